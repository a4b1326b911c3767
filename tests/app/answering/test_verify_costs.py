"""Verify times on disk: measured once, and again whenever the file is not what is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.answering.engine import Engine
from app.answering.verify_costs import Key, costs_key, load_costs
from app.documents.indexing import index_files
from app.setup.devices import default_max_nodes
from app.setup.settings import Paths, load_settings
from decoding.budget import AdaptiveNodes
from decoding.verify_costs import VerifyCosts
from tests.app.tiny_models import write_bge_m3, write_llama
from tests.decoding.tiny import tiny_target


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def key(tmp_path: Path) -> Key:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    return costs_key("some/model", tmp_path / "model", tiny_target("llama"), "cpu", "float32", 8)


def load(tmp_path: Path, key: Key, said: list[str]) -> VerifyCosts:
    return load_costs(tmp_path / "cache" / "verify-costs", key, tiny_target("llama"), said.append)


def file_of(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "cache" / "verify-costs").glob("*.json")
    return found


def test_times_are_measured_once_and_said_so_and_then_read(tmp_path: Path, key: Key, said: list[str]) -> None:
    first = load(tmp_path, key, said)
    assert load(tmp_path, key, said) == first
    assert said == ["Measuring verify times (once for this model on this machine)"]
    assert first.nodes == (0, 1, 2, 3, 4, 6, 8)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "null", "[]", '{"key": 1}', "\x00\x00", "[" * 100_000,
        '{"key": KEY, "nodes": [0, 1], "seconds": [1.0]}',
        '{"key": KEY, "nodes": [0, 1], "seconds": [1.0, 0.0]}',
        '{"key": KEY, "nodes": [0, 1], "seconds": [1.0, NaN]}',
        '{"key": KEY, "nodes": [1, 0], "seconds": [1.0, 1.0]}',
        '{"key": KEY, "nodes": [0, Infinity], "seconds": [1.0, 1.0]}',
        '{"key": KEY, "nodes": null, "seconds": [1.0]}',
        '{"key": {}, "nodes": [0, 1], "seconds": [1.0, 1.0]}',
    ],
)  # fmt: skip
def test_a_file_that_holds_no_times_for_this_model_is_measured_again_and_mended(
    tmp_path: Path, key: Key, said: list[str], text: str
) -> None:
    load(tmp_path, key, said)
    file_of(tmp_path).write_text(text.replace("KEY", json.dumps(key)))
    again = load(tmp_path, key, said)
    assert len(said) == 2
    assert load(tmp_path, key, said) == again
    assert len(said) == 2


@pytest.mark.parametrize(
    "name", ["model", "files", "target", "device", "dtype", "threads", "torch", "transformers", "max_nodes"]
)
def test_whatever_verify_times_depend_on_has_them_measured_again(
    tmp_path: Path, key: Key, said: list[str], name: str
) -> None:
    load(tmp_path, key, said)
    load(tmp_path, key | {name: 4}, said)
    assert len(said) == 2


def test_another_model_in_the_same_folder_has_another_key(tmp_path: Path, key: Key) -> None:
    (tmp_path / "model" / "config.json").write_text('{"a": 1}')
    assert costs_key("some/model", tmp_path / "model", tiny_target("llama"), "cpu", "float32", 8) != key


def test_a_folder_that_cannot_be_written_costs_only_the_next_measurement(
    tmp_path: Path, key: Key, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert load(tmp_path, key, said).nodes[-1] == 8
    assert "will be measured again" in caplog.text


def engine(tmp_path: Path, said: list[str], **settings: object) -> Engine:
    folder = tmp_path / "llama"
    if not folder.exists():
        write_llama(folder)
    chosen = load_settings(model=str(folder), device="cpu", **settings)
    return Engine(chosen, said.append, Paths(tmp_path / "data", tmp_path / "cache"))


def test_an_engine_has_one_budget_per_drafter_that_all_learn_the_same_times(tmp_path: Path, said: list[str]) -> None:
    made = engine(tmp_path, said)
    trie, llma = made.node_budget("trie"), made.node_budget("llma")
    assert isinstance(trie, AdaptiveNodes)
    assert isinstance(llma, AdaptiveNodes)
    assert made.node_budget("trie") is trie
    assert trie is not llma
    assert len(said) == 1
    engine(tmp_path, said).node_budget("trie")
    assert len(said) == 1


@pytest.mark.parametrize(
    ("drafter", "settings"), [("trie", {"node_budget": "fixed"}), ("plain", {}), ("trie", {"max_nodes": 0})]
)
def test_nothing_is_measured_where_there_is_nothing_to_choose(
    tmp_path: Path, said: list[str], drafter: str, settings: dict[str, object]
) -> None:
    assert engine(tmp_path, said, **settings).node_budget(drafter) is None
    assert said == []


def test_max_nodes_is_by_device_and_lower_where_all_of_them_are_always_verified() -> None:
    assert [default_max_nodes(device, adaptive=True) for device in ("cpu", "mps", "cuda:1")] == [32, 32, 64]
    assert [default_max_nodes(device, adaptive=False) for device in ("cpu", "mps", "cuda:1")] == [8, 16, 32]


def test_a_max_nodes_that_was_set_holds_with_either_budget(tmp_path: Path, said: list[str]) -> None:
    for node_budget in ("adaptive", "fixed"):
        assert engine(tmp_path, said, max_nodes=5, node_budget=node_budget).max_nodes == 5


def test_times_that_a_busy_machine_disturbed_are_measured_again_once(tmp_path: Path, said: list[str]) -> None:
    encoder = str(write_bge_m3(tmp_path / "encoder"))
    made = engine(tmp_path, said, profile="gpu", encoder=encoder, reranker="none", max_new_tokens=30)
    (tmp_path / "notes.txt").write_text("the lambda is a function.\n\n" * 20)
    folder = made.paths.indexes / "notes"
    index_files(made, folder, [tmp_path / "notes.txt"])
    made.load()
    file = file_of(tmp_path)
    for _ in range(2):
        kept = json.loads(file.read_text())
        file.write_text(json.dumps(kept | {"seconds": [1000.0 * second for second in kept["seconds"]]}))
        vars(made).pop("verify_times")
        made._budgets.clear()
        list(made.ask("what is lambda?", folder))
        if not file.exists():
            made.load()
    measured = [line for line in said if "Measuring" in line]
    assert len(measured) == 2
    assert min(json.loads(file.read_text())["seconds"]) > 0.1  # the second time it is believed
