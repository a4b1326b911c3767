"""Datastores for people: what is read, what is refused, and the commands as real processes with a tiny model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from app.answering.engine import Engine
from app.documents.datastores import Report, build, datastore_folder, listed, verify
from app.setup.settings import Paths, load_settings
from decoding.drafters import Resources, make_drafter
from decoding.tokenizer_hash import tokenizer_hash
from indexes.crest_build import CrestSettings
from indexes.errors import DamagedIndexError, IndexStoreError, NothingToIndexError, SettingError
from indexes.files import current_generation
from tests.app.tiny_models import write_llama

APP = str(Path(__file__).parents[3] / "app.py")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model whose tokens are single characters."""
    return write_llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def tokenizer(model: Path) -> Any:
    return AutoTokenizer.from_pretrained(model)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "data", tmp_path / "cache")


def built(paths: Paths, tokenizer: Any, *given: Path, name: str = "past", kind: str = "crest") -> Report:
    return build(paths, Report(name, kind), given, tokenizer, CrestSettings())


def drafted(paths: Paths, tokenizer: Any, text: str, kind: str = "crest") -> str:
    drafter = make_drafter(kind, Resources(tokenizer_hash(tokenizer), datastore_folder(paths, "past")))
    tree = drafter.propose(tokenizer.encode(text, add_special_tokens=False), 16)
    return "".join(tokenizer.convert_ids_to_tokens(tree.tokens.tolist()))


@pytest.mark.parametrize("kind", ["crest", "rest"])
def test_what_follows_in_a_file_is_drafted(paths: Paths, tokenizer: Any, tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.txt").write_text("the kettle")
    report = built(paths, tokenizer, tmp_path / "a.txt", kind=kind)
    assert (report.files, report.texts, report.tokens, report.skipped) == (1, 1, 10, {})
    assert report.bytes > 0
    assert drafted(paths, tokenizer, "of the ket", kind) == "tle"


def test_a_folder_s_text_files_are_read_and_hidden_and_other_ones_are_not(
    paths: Paths, tokenizer: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    for name in ("a.txt", "b.md", "c.rst", "sub/d.py", "e.pyi", "f.png", ".hidden.txt", ".git/g.txt"):
        (folder / name).write_text("words")
    (folder / "h.txt").write_bytes(b"\xff\xfe\x00")
    report = built(paths, tokenizer, folder, folder / "a.txt")
    assert (report.files, report.texts) == (5, 5)
    assert report.skipped == {str(folder / "h.txt"): "not UTF-8 text"}


def test_a_file_given_by_name_is_read_whatever_it_is_called(paths: Paths, tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all: of it")
    assert built(paths, tokenizer, tmp_path / "Makefile").files == 1


def test_each_line_of_jsonl_is_a_text(paths: Paths, tokenizer: Any, tmp_path: Path) -> None:
    lines = ['{"text": "abc"}', '"dab"', "", '{"answer": "xyz", "id": 1}', "7", "{broken", '{"other": "x"}', "[" * 9999]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    report = built(paths, tokenizer, tmp_path / "a.jsonl")
    assert (report.texts, report.tokens) == (3, 9)
    assert [file.rpartition(":")[2] for file in report.skipped] == ["5", "6", "7", "8"]
    assert [drafted(paths, tokenizer, text) for text in ("a", "z", "xy")] == ["bc", "", "z"]


def test_nothing_readable_is_refused_with_the_reasons(paths: Paths, tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xff")
    with pytest.raises(NothingToIndexError, match=r"a\.txt: not UTF-8 text; files read are those with \.txt"):
        built(paths, tokenizer, tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": "../x"}, "'../x' cannot be the name of a datastore"),
        ({"name": ""}, "'' cannot be the name of a datastore"),
        ({"kind": "best"}, "unknown kind 'best'; choose one of crest, rest"),
    ],
)
def test_what_cannot_be_is_refused(
    paths: Paths, tokenizer: Any, tmp_path: Path, changed: dict[str, str], words: str
) -> None:
    (tmp_path / "a.txt").write_text("words")
    with pytest.raises(SettingError, match=words):
        built(paths, tokenizer, tmp_path / "a.txt", **changed)


def test_a_missing_file_is_refused_by_name(paths: Paths, tokenizer: Any, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"there is no file or folder '.*nowhere'"):
        built(paths, tokenizer, tmp_path / "nowhere")


def test_an_unknown_datastore_lists_what_there_is(paths: Paths, tokenizer: Any, tmp_path: Path) -> None:
    with pytest.raises(IndexStoreError, match=r"no datastore 'x' \(there is none yet\); build it with: python app\.py"):
        datastore_folder(paths, "x")
    (tmp_path / "a.txt").write_text("words")
    built(paths, tokenizer, tmp_path / "a.txt")
    with pytest.raises(IndexStoreError, match=r"no datastore 'x' \(there are past\)"):
        datastore_folder(paths, "x")
    assert datastore_folder(paths, None) is None


def test_damage_is_listed_and_found_by_verify(paths: Paths, tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words")
    report = built(paths, tokenizer, tmp_path / "a.txt")
    assert listed(paths) == [{"name": "past", "kind": "crest", "bytes": report.bytes}]
    assert verify(paths, "past") == {"name": "past", "kind": "crest", "bytes": report.bytes, "ok": True}
    records = current_generation(paths.datastores / "past")[0] / "records"
    records.write_bytes(bytes(len(records.read_bytes())))
    with pytest.raises(DamagedIndexError, match="records is damaged"):
        verify(paths, "past")
    records.unlink()
    (entry,) = listed(paths)
    assert "records cannot be read" in entry["error"]


# The engine


def test_the_engine_gives_drafters_the_datastore_and_its_tokenizer_s_hash(
    paths: Paths, model: Path, tokenizer: Any, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("words")
    built(paths, tokenizer, tmp_path / "a.txt")
    engine = Engine(load_settings(model=str(model), drafter="crest", datastore="past"), home=paths)
    resources = engine.resources("crest")
    assert resources == Resources(tokenizer_hash(tokenizer), paths.datastores / "past")
    make_drafter("crest", resources)


def test_the_engine_refuses_a_drafter_without_its_datastore_before_any_model_is_loaded(paths: Paths) -> None:
    with pytest.raises(SettingError, match=r"'crest' needs a datastore: .*datastore build"):
        Engine(load_settings(drafter="crest"), home=paths)
    with pytest.raises(IndexStoreError, match="no datastore 'past'"):
        Engine(load_settings(drafter="crest", datastore="past"), home=paths)


# The commands


def start(home: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = os.environ | {"QUOTEWRIGHT_HOME": str(home), "COLUMNS": "200", "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(
        [sys.executable, APP, "datastore", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=home,
    )  # fmt: skip


def run(home: Path, *arguments: str) -> tuple[int, str, str]:
    process = start(home, *arguments)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def test_build_list_and_verify_print_one_json_value_each(tmp_path: Path, model: Path) -> None:
    (tmp_path / "a.txt").write_text("the kettle")
    code, out, _ = run(tmp_path, "build", "a.txt", "--name", "past", "--model", str(model), "--size", "5", "--json")
    report = json.loads(out)
    assert (code, report["name"], report["kind"], report["tokens"]) == (0, "past", "crest", 10)
    assert json.loads(run(tmp_path, "list", "--json")[1]) == [
        {"name": "past", "kind": "crest", "bytes": report["bytes"]}
    ]
    assert json.loads(run(tmp_path, "verify", "past", "--json")[1])["ok"]


def test_a_datastore_is_no_larger_than_its_limit(tmp_path: Path, model: Path) -> None:
    (tmp_path / "a.txt").write_text("the kettle and the other kettle")
    build = ["build", "a.txt", "--name", "past", "--model", str(model), "--json"]
    whole, small = (json.loads(run(tmp_path, *build, *more)[1]) for more in ([], ["--limit-mb", "0.0002"]))
    assert small["bytes"] - 1024 <= 200 < whole["bytes"] - 1024  # a manifest has less than 1024 bytes


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["build", "a.txt"], ["--name NAME"]),
        (["build", "nowhere", "--name", "x", "--model", "MODEL"], ["no file or folder 'nowhere'"]),
        (["build", "a.txt", "--name", "x", "--size", "0"], ["size is 0; it must be 1 to"]),
        (["build", "a.txt", "--name", "x", "--limit-mb", "0"], ["limit_bytes is 0; it must be 1 to"]),
        (["verify", "x"], ["no datastore 'x'", "datastore build PATH"]),
    ],
)
def test_a_user_s_error_ends_with_two_and_a_message(
    tmp_path: Path, model: Path, arguments: Sequence[str], words: Sequence[str]
) -> None:
    (tmp_path / "a.txt").write_text("words")
    code, out, err = run(tmp_path, *[str(model) if word == "MODEL" else word for word in arguments])
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert [word for word in words if word not in err] == []


def test_ctrl_c_ends_a_build_without_a_traceback_or_half_a_datastore(tmp_path: Path, model: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for number in range(3000):
        (source / f"{number}.txt").write_text(f"{number} words of many kinds " * 400)
    process = start(tmp_path, "build", "in", "--name", "past", "--model", str(model))
    watchdog = threading.Timer(200, process.kill)
    watchdog.start()
    folder = tmp_path / "data" / "datastores" / "past"
    while process.poll() is None and not (folder / "writing").exists():
        pass
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    watchdog.cancel()
    assert (process.returncode, "Traceback" in err) == (130, False)
    assert not [path for path in folder.iterdir() if path.is_dir()]
    assert json.loads(run(tmp_path, "list", "--json")[1]) == []
