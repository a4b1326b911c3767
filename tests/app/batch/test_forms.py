"""Every form of rows, told by its columns and read into a question."""

from __future__ import annotations

from typing import Any

import pytest

from app.batch.forms import LONG_CHARS, form_of, read_row
from app.batch.questions import Question, Reading
from indexes.errors import DocumentError, SettingError


def read(row: dict[str, Any]) -> Question:
    return read_row(form_of(row, "q.jsonl"), row, "7")


HAGRID = {
    "query_id": 3,
    "query": "Who sat?",
    "quotes": [{"idx": 1, "docid": "d#1", "text": "The cat sat."}, {"idx": 2, "docid": "d#2", "text": "It ran."}],
    "answers": [
        {
            "answer": "The cat sat [1]. It ran [2].", "informative": 1, "attributable": 1,
            "sentences": [
                {"index": 0, "text": "The cat sat [1].", "attributable": 1, "informative": 1},
                {"index": 1, "text": "It ran [2].", "attributable": 0, "informative": 1},
            ],
        },
        {
            "answer": "I know not [2].", "informative": 0, "attributable": 1,
            "sentences": [{"index": 0, "text": "I know not [2] [9].", "attributable": None, "informative": None}],
        },
    ],
}  # fmt: skip


def test_hagrid_s_quotes_are_the_passages_and_its_answers_without_marks_are_expected() -> None:
    question = read(HAGRID)
    assert (question.id, question.text, question.reading) == ("3", "Who sat?", Reading.GIVEN)
    assert question.passages == (("1", "The cat sat."), ("2", "It ran."))
    assert question.expected == ("The cat sat. It ran.",)  # the second one is marked as not informative


def test_hagrid_s_attributable_sentences_say_what_is_to_be_cited() -> None:
    # the second sentence of the first answer is not attributable; that of the second answer is as its answer is
    # judged, and cites a quote 9 that is not there
    assert read(HAGRID).citations == (("1",), ("2",))


def hub_triviaqa(**pages: Any) -> dict[str, Any]:
    answer = {"value": "Paris", "aliases": ["Paris", "City of Light"], "normalized_aliases": ["paris", "city of light"]}
    return {"question": "Where?", "question_id": "tc_1", "answer": answer, **pages}


def test_triviaqa_from_the_hub_without_pages_is_asked_of_an_index() -> None:
    question = read(hub_triviaqa(entity_pages={"filename": [], "wiki_context": []}))
    assert question == Question("tc_1", "Where?", ("paris", "city of light"))


def test_triviaqa_s_evidence_pages_are_searched() -> None:
    question = read(hub_triviaqa(entity_pages={"filename": ["P.txt", "E.txt"], "wiki_context": ["It is Paris.", " "]}))
    assert (question.passages, question.reading) == ((("P.txt", "It is Paris."),), Reading.SEARCHED)


def test_triviaqa_s_own_json_expects_normalised_aliases_and_what_people_answered() -> None:
    row = {"QuestionId": "q", "Question": "Who?", "Answer": {"NormalizedAliases": ["a b"], "HumanAnswers": ["A. B."]}}
    assert read(row) == Question("q", "Who?", ("a b", "A. B."))


def test_llma_rows_read_their_docs_and_expect_the_recorded_answer() -> None:
    question = read({"query": "Why?", "docs": ["So.", "Or so."], "result": {"text": " Because. "}})
    assert question == Question("7", "Why?", ("Because.",), (("1", "So."), ("2", "Or so.")), Reading.GIVEN)


def test_an_llma_query_that_holds_its_docs_is_a_whole_prompt() -> None:
    question = read({"query": "Summarise: So it is.", "docs": ["So it is."], "result": {"text": "2####It is."}})
    assert (question.reading, question.expected) == (Reading.PROMPT, ("It is.",))


def test_a_spec_bench_row_is_a_whole_prompt_and_its_listed_references_are_apart() -> None:
    row = {"question_id": 5, "category": "rag", "turns": ["Read this. Why?", "More."], "reference": ["['So', 'Or']"]}
    assert read(row) == Question("5", "Read this. Why?", ("So", "Or"), reading=Reading.PROMPT)
    assert read({**row, "reference": ["[so] it is"]}).expected == ("[so] it is",)


def test_a_squad_row_reads_its_paragraph() -> None:
    row = {
        "id": "s",
        "question": "Who?",
        "title": "T",
        "context": "Ann.",
        "answers": [{"text": "Ann"}, {"text": "Ann"}],
    }
    expected = Question("s", "Who?", ("Ann",), (("T", "Ann."),), Reading.GIVEN)
    assert read(row) == expected
    assert read({**row, "answers": {"text": ["Ann"], "answer_start": [0]}}) == expected  # as the hub has it


def test_a_squad_question_without_answers_cannot_be_answered() -> None:
    row = {"id": "s", "question": "Who?", "context": "Ann.", "answers": [], "is_impossible": True}
    assert (read(row).unanswerable, read(row).expected) == (True, ())


def test_any_row_with_a_question_column_will_do() -> None:
    assert read({"Question ": "Who?"}) == Question("7", "Who?")
    row = {"id": 1, "query": "Who?", "aliases": ["Ann", "A.", "Ann"], "context": "It was Ann."}
    assert read(row) == Question("1", "Who?", ("Ann", "A."), (("1", "It was Ann."),), Reading.GIVEN)


def test_a_cell_of_a_table_may_hold_a_json_list() -> None:
    question = read({"question": "Who?", "answers": '["Ann", "A."]', "passages": '[{"id": "p", "text": "Ann."}, "B."]'})
    assert (question.expected, question.passages) == (("Ann", "A."), (("p", "Ann."), ("2", "B.")))


def test_a_text_in_brackets_that_is_no_json_is_a_text() -> None:
    assert read({"question": "Who?", "answer": "[sic]"}).expected == ("[sic]",)


def test_a_long_passage_is_searched_and_not_read_whole() -> None:
    assert read({"question": "Who?", "context": "a" * (LONG_CHARS + 1)}).reading == Reading.SEARCHED


def test_rows_without_a_question_column_are_refused_with_their_columns() -> None:
    with pytest.raises(SettingError, match="has no question column; its columns are: text, label"):
        form_of({"text": "x", "label": 1}, "q.jsonl")


@pytest.mark.parametrize(
    ("first", "row", "reason"),
    [
        ({"question": "x"}, {"question": " "}, "the question is empty"),
        ({"question": "x"}, {"answer": "y"}, "the question is empty"),
        (HAGRID, {**HAGRID, "quotes": [{"idx": 1}]}, "no HAGRID row: KeyError: 'text'"),
        (HAGRID, {**HAGRID, "answers": [4]}, "no HAGRID row: AttributeError"),
    ],
)
def test_a_row_that_is_not_as_the_others_says_what_is_wrong(
    first: dict[str, Any], row: dict[str, Any], reason: str
) -> None:
    with pytest.raises(DocumentError, match=reason):
        read_row(form_of(first, "q.jsonl"), row, "1")


def test_a_question_s_digest_changes_with_all_that_is_in_it() -> None:
    questions = [
        Question("1", "a"), Question("1", "b"), Question("2", "a"), Question("1", "a", ("x",)),
        Question("1", "a", passages=(("1", "x"),)), Question("1", "a", unanswerable=True),
    ]  # fmt: skip
    assert len({question.digest for question in questions}) == len(questions)
    assert Question("1", "a").digest == questions[0].digest
