"""Rows out of files of every kind, good and bad."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.batch.datasets import load
from app.batch.files import read_rows
from app.batch.questions import Reading
from indexes.errors import DocumentError, SettingError


def test_a_bad_line_stands_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"question": "a\xe2\x80\xa8b"}\n\n[1]\nnope\n' + b"[" * 100_000 + b'\n{"question": "c"}'
    )
    first, listed, nope, deep, last = read_rows(path)
    assert (first, last) == ({"question": "a\u2028b"}, {"question": "c"})
    assert [str(error).split(" ")[:2] for error in (listed, nope, deep)] == [
        ["line", "3"], ["line", "4"], ["line", "5"],
    ]  # fmt: skip


def test_a_csv_s_cells_may_hold_commas_lines_and_pages(tmp_path: Path) -> None:
    path = tmp_path / "q.CSV"
    page = "x" * 200_000  # the csv module takes 131,072 unless told otherwise
    path.write_text(f'question,context\n"a, b\nc",{page}\nd,e,f\n')
    first, error = read_rows(path)
    assert first == {"question": "a, b\nc", "context": page}
    assert isinstance(error, DocumentError)


def test_a_tsv_is_told_by_its_tabs(tmp_path: Path) -> None:
    path = tmp_path / "q.tsv"
    path.write_text("question\tanswer\na, b\tc\n")
    assert read_rows(path) == [{"question": "a, b", "answer": "c"}]


def test_a_parquet_file_and_a_json_list_hold_rows(tmp_path: Path) -> None:
    from pyarrow import Table, parquet

    rows = [{"question": "a", "answers": ["b", "c"]}]
    parquet.write_table(Table.from_pylist(rows), tmp_path / "q.parquet")
    (tmp_path / "q.json").write_text(json.dumps(rows))
    assert read_rows(tmp_path / "q.parquet") == read_rows(tmp_path / "q.json") == rows


def test_squad_s_json_gives_a_row_for_every_question(tmp_path: Path) -> None:
    qas = [
        {"id": "1", "question": "a?", "answers": [{"text": "a", "answer_start": 0}], "is_impossible": False},
        {"id": "2", "question": "b?", "answers": [], "plausible_answers": [], "is_impossible": True},
    ]
    data = {"version": "v2.0", "data": [{"title": "T", "paragraphs": [{"context": "a b", "qas": qas}]}]}
    (tmp_path / "dev.json").write_text(json.dumps(data))
    squad = load(str(tmp_path / "dev.json"))
    first, second = squad.question(0), squad.question(1)
    assert (first.expected, first.passages, second.unanswerable) == (("a",), (("T", "a b"),), True)


def triviaqa(folder: Path, **data: object) -> Path:
    row = {
        "QuestionId": "q1", "Question": "Who?", "Answer": {"NormalizedAliases": ["ann"]},
        "EntityPages": [{"Filename": "Ann.txt"}, {"Filename": "../../secret.txt"}, {"Filename": "gone.txt"}],
        "SearchResults": [{"Filename": "7/7_1.txt"}],
    }  # fmt: skip
    path = folder / "qa" / "wikipedia-dev.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"Domain": "Wikipedia", "Data": [row], **data}))
    return path


def test_triviaqa_s_evidence_is_found_beside_its_questions_and_nowhere_else(tmp_path: Path) -> None:
    path = triviaqa(tmp_path)
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "evidence" / "wikipedia").mkdir(parents=True)
    (tmp_path / "evidence" / "wikipedia" / "Ann.txt").write_text("It was Ann.")
    (tmp_path / "evidence" / "web" / "7").mkdir(parents=True)
    (tmp_path / "evidence" / "web" / "7" / "7_1.txt").write_text("Ann did it.")
    question = load(str(path)).question(0)
    assert question.passages == (("Ann.txt", "It was Ann."), ("7_1.txt", "Ann did it."))
    assert question.reading == Reading.SEARCHED


def test_without_evidence_triviaqa_is_asked_of_an_index(tmp_path: Path) -> None:
    question = load(str(triviaqa(tmp_path))).question(0)
    assert (question.passages, question.reading) == ((), Reading.INDEX)


def test_of_a_verified_set_only_the_verified_questions_count(tmp_path: Path) -> None:
    assert read_rows(triviaqa(tmp_path, VerifiedEval=True)) == []


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("q.txt", b"Who?", "is of no kind that holds questions; give one that ends with .jsonl"),
        ("q.jsonl", b"\xff\xfe", "cannot be read as UTF-8 text: invalid start byte at byte 0"),
        ("q.json", b"{", "is not JSON"),
        ("q.json", b'{"a": 1}', "holds no rows"),
        ("q.json", b'{"data": [4]}', "neither TriviaQA's nor SQuAD's JSON"),
        ("q.json", b'{"Data": [4]}', "neither TriviaQA's nor SQuAD's JSON"),
        ("q.parquet", b"x", "cannot be read as Parquet"),
        ("q.jsonl", b"", "holds no row that can be read"),
        ("q.jsonl", b"nope", "holds no row that can be read: line 1 is not JSON"),
        ("q.jsonl", b'{"a": 1}', "has no question column; its columns are: a"),
    ],
)
def test_a_file_that_is_no_data_set_is_refused_with_the_reason(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SettingError, match=reason):
        load(str(tmp_path / name))
