"""The benchmark of large indexes on small ones: real builds in real processes, exact search by hand, the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import cli
from benchmarks.index.exact import nearest
from benchmarks.index.processes import apart
from benchmarks.index.real import read_paragraphs
from benchmarks.index.synthetic import Synthetic
from indexes.errors import QuotewrightError, SettingError
from indexes.neighbours import recall
from retrieval.indexing import Progress


def silent(what: str, done: int, total: int) -> None:
    assert 0 <= done <= total


def test_exact_neighbours_and_recall_are_those_worked_by_hand() -> None:
    vectors = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float16)
    true = nearest(vectors, np.array([[1, 0.1]], np.float32), 2, silent)
    assert sorted(true[0].tolist()) == [0, 2]
    assert recall([[2, 1]], true) == 0.5


def test_synthetic_vectors_are_of_length_one_and_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for name in ("a.npy", "b.npy"):
        Synthetic(300, 16, 5, seed=7, new_topics=False).write(tmp_path / name, 9, silent)
    Synthetic(300, 16, 5, seed=8, new_topics=False).write(tmp_path / "c.npy", 9, silent)
    a, b, c = (np.load(tmp_path / name) for name in ("a.npy", "b.npy", "c.npy"))
    assert np.linalg.norm(a.astype(np.float32), axis=1) == pytest.approx(np.ones(309), abs=1e-3)
    assert (a == b).all()
    assert not (a == c).all()


def test_there_are_as_many_synthetic_texts_as_vectors() -> None:
    texts = list(Synthetic(1001, 16, 5, seed=0, new_topics=False).texts(silent))
    assert [len(texts), len(texts[-1].split())] == [1001, 5]


def test_more_paragraphs_than_there_are_is_told(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(f'"""{"word " * 30}\n\nshort"""\n')
    assert read_paragraphs(1, silent, tmp_path) == [" ".join(["word"] * 30)]
    with pytest.raises(SettingError, match="have 1 paragraphs of documentation; ask for fewer than 2"):
        read_paragraphs(2, silent, tmp_path)


def fails(progress: Progress, what: str) -> None:
    progress("Failing", 0, 1)
    raise ValueError(what)


def dies(progress: Progress) -> None:
    import os

    os._exit(3)


def test_what_goes_wrong_in_another_process_is_told_here() -> None:
    with pytest.raises(QuotewrightError, match="fails failed: ValueError: too much"):
        apart(silent, fails, "too much")
    with pytest.raises(QuotewrightError, match="the process of dies died \\(exit code 3\\)"):
        apart(silent, dies)


def test_the_command_builds_opens_and_searches_and_draws_how_that_grows(tmp_path: Path) -> None:
    options = ["--dim", "32", "--words", "8", "--questions", "20", "--real", "300", "--probes", "4,256", "--json"]
    told = CliRunner().invoke(
        cli, ["index", "--vectors", "500,11000", "--out", str(tmp_path / "out"), "--scratch", str(tmp_path), *options]
    )
    assert told.exit_code == 0, told.output
    result = json.loads(told.stdout)
    small, large, real = result["indexes"]
    assert [small["vectors"], large["vectors"], real["corpus"]] == ["Flat", "IVF256,PQ32", "docstrings"]
    assert [small["recall"], real["recall"]] == [1.0, 1.0]
    assert large["recall"] > 0.9
    assert large["nprobe"] >= 16
    assert large["open_mb_read"] < large["mb_on_disk"]
    few, every = (line["recall"] for line in result["probes"] if line["passages"] == 11000)
    assert few < every
    assert {line["series"] for line in result["growth"]} >= {"build_s", "mb_on_disk", "p50_ms"}
    assert (tmp_path / "out" / "index-growth.png").stat().st_size > 1000
    assert not list(tmp_path.glob("index-*"))


def test_a_disk_with_too_little_room_is_told_before_anything_is_made(tmp_path: Path) -> None:
    told = CliRunner().invoke(cli, ["index", "--vectors", "900000000000", "--scratch", str(tmp_path)])
    assert told.exit_code != 0
    assert "GB in" in str(told.exception)
    assert not list(tmp_path.iterdir())
