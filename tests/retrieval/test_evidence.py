"""Pages that came with a question: their best pieces, where they stand."""

from __future__ import annotations

from retrieval.evidence import Evidence

KETTLES = "Kettles are old. They boil water."
TRAINS = "Trains run on rails. Steam drives some trains. Rails are steel."


def test_the_best_pieces_come_first_and_say_where_they_stand() -> None:
    found = Evidence([("k", KETTLES), ("t", TRAINS)], 30).find("What drives trains?", 2)
    assert [item.passage.text for item in found] == ["Steam drives some trains.", "Trains run on rails."]
    best = found[0].passage
    assert (best.id, best.source, TRAINS[best.start : best.start + len(best.text)]) == ("t#1", "t", best.text)
    assert found[0].score > found[1].score > 0


def test_where_no_piece_shares_a_word_the_first_ones_are_read() -> None:
    found = Evidence([("k", KETTLES)], 20).find("Zebras?", 1)
    assert [item.passage.text for item in found] == ["Kettles are old."]


def test_pages_without_words_give_no_passages() -> None:
    assert Evidence([("k", " \n")], 100).find("Zebras?", 3) == []
    assert len(Evidence([("k", "? !")], 100).find("Zebras?", 3)) == 1
