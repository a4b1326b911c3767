from __future__ import annotations

import bs4

from app.answering.answers import Answer, Pass, Stats
from app.answering.race import Lane, RaceState
from app.page.race_html import race_html


def _lane(text: str, elapsed_s: float, finished: str | None, *passes: Pass) -> Lane:
    stats = Stats("trie", new_tokens=sum(one.tokens for one in passes), forward_passes=len(passes))
    return Lane(Answer("q", (), stats, text, finished=finished, passes=passes), elapsed_s)


def _shown(state: RaceState) -> str:
    return " ".join(bs4.BeautifulSoup(race_html(state), "lxml").get_text(" ").split())


def test_before_both_are_done_nothing_is_concluded() -> None:
    state = RaceState(_lane("a", 2.0, None, Pass(1)), _lane("a b", 1.0, "stop", Pass(3, ("question",) * 2)))
    assert "2.0 s · 1 tokens" in _shown(state)
    assert "1.0 s · 3 tokens · done" in _shown(state)
    assert "same text" not in _shown(state)


def test_two_equal_texts_are_said_to_be_the_same_and_how_much_faster_one_came() -> None:
    state = RaceState(_lane("a b", 3.0, "stop", Pass(1)), _lane("a b", 1.5, "stop", Pass(1)))
    assert "The same text, to the letter. Drafted took 1.5 s and plain 3.0 s: 2.0 times as fast." in _shown(state)


def test_two_different_texts_are_never_said_to_be_the_same() -> None:
    state = RaceState(_lane("a b", 3.0, "stop", Pass(1)), _lane("a c", 1.5, "stop", Pass(1)))
    assert "The texts differ" in _shown(state)


def test_a_race_that_was_stopped_has_no_verdict() -> None:
    state = RaceState(_lane("a", 3.0, "cancelled", Pass(1)), _lane("a", 1.5, "cancelled", Pass(1)))
    assert "times as fast" not in _shown(state)
    assert "The same text" not in _shown(state)
