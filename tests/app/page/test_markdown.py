from __future__ import annotations

from app.answering.answers import Answer, Stats
from app.answering.spans import Span
from app.page.conversations import Conversation, Entry, StoredTurn
from app.page.markdown import answer_markdown, conversation_markdown
from indexes.passages import Passage
from retrieval.finder import Found


def _found(number: int, text: str, page: int | None = None) -> Found:
    return Found(Passage(number, f"p{number}", f"file{number}.txt", f"file{number}.txt", 0, text, page), 1.0)


PASSAGES = (_found(1, "the cat sat"), _found(2, "never copied"), _found(3, "on the\nmat", 4))


def _answer(text: str, *spans: Span) -> Answer:
    return Answer("q", PASSAGES, Stats("trie"), text, spans)


def test_each_copied_run_is_followed_by_its_passages_number_and_only_those_are_listed() -> None:
    answer = _answer("So the cat sat on the mat.", Span(3, 14, "p1", 0, 11), Span(15, 25, "p3", 0, 10))
    assert answer_markdown(answer) == (
        "So the cat sat [1] on the mat [3].\n\n[1] file1.txt: “the cat sat”\n\n[3] file3.txt, page 4: “on the mat”"
    )


def test_runs_of_one_passage_that_follow_one_another_are_cited_once() -> None:
    answer = _answer("the cat the cat", Span(0, 7, "p1", 0, 7), Span(8, 15, "p1", 0, 7))
    assert answer_markdown(answer).startswith("the cat the cat [1]\n")


def test_runs_of_one_passage_with_words_between_are_each_cited() -> None:
    answer = _answer("the cat and the cat", Span(0, 7, "p1", 0, 7), Span(12, 19, "p1", 0, 7))
    assert answer_markdown(answer).startswith("the cat [1] and the cat [1]\n")


def test_an_answer_without_spans_is_only_its_text() -> None:
    assert answer_markdown(_answer("My own words.")) == "My own words."


def test_a_long_passage_is_quoted_up_to_a_word() -> None:
    answer = Answer("q", (_found(1, "word " * 100),), Stats("trie"), "word", (Span(0, 4, "p1", 0, 4),))
    assert answer_markdown(answer).endswith("word word …”")
    assert len(answer_markdown(answer)) < 340


def test_a_conversation_has_a_heading_for_each_question() -> None:
    turns = (StoredTurn(1, "notes", "First\nquestion?", _answer("Yes.")), StoredTurn(2, "notes", "Second?"))
    kept = Conversation(Entry("c", "A talk", "notes", 0.0), turns)
    assert conversation_markdown(kept) == ("# A talk\n\n## First question?\n\nYes.\n\n## Second?\n\n*(not answered)*\n")
