from __future__ import annotations

import threading

from app.page.parts import Changes
from app.page.running import Running

NO_CHANGE: Changes = {"notice": None}


def test_what_is_running_changes_the_page() -> None:
    assert list(Running(NO_CHANGE).show({"live": "text"})) == [{"live": "text"}]


def test_what_was_left_is_stopped_and_changes_nothing() -> None:
    running = Running(NO_CHANGE)
    running.leave()
    assert running.cancelled.is_set()
    assert list(running.show({"live": "text"})) == [NO_CHANGE]


def test_leaving_waits_until_the_last_change_is_on_its_way() -> None:
    running = Running(NO_CHANGE)
    change = running.show({"live": "text"})
    next(change)
    left = threading.Thread(target=running.leave)
    left.start()
    left.join(0.1)
    assert left.is_alive()
    assert next(change, None) is None  # Gradio has sent it, and asks for the next
    left.join(1)
    assert not left.is_alive()


def test_a_page_that_never_takes_its_last_change_is_left_all_the_same() -> None:
    running = Running(NO_CHANGE)
    change = running.show({"live": "text"})
    next(change)
    running.leave()
    change.close()
    assert list(running.show({"live": "text"})) == [NO_CHANGE]
