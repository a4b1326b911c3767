"""One answer that is being written for a page: it can be stopped, and it can be left for something else."""

from __future__ import annotations

import threading
from collections.abc import Generator

from app.page.parts import Changes

GATE_S = 2.0  # how long a page waits for its last change to be on its way; a page that is gone never takes it


class Running:
    """`cancelled` stops it; once it is left, it changes nothing on the page any more but makes `no_change`."""

    def __init__(self, no_change: Changes) -> None:
        self._no_change = no_change
        self.cancelled = threading.Event()
        self._gate = threading.Lock()  # held from the making of a change until Gradio has sent it
        self._left = False

    def show(self, changes: Changes) -> Generator[Changes]:
        """Have the page changed, unless it shows something else by now. To be used as `yield from`."""
        with self._gate:
            yield self._no_change if self._left else changes  # Gradio shows a generator's last change again at its end

    def leave(self) -> None:
        """Stop, and have nothing shown from now on: whatever is shown next comes after the last change."""
        self.cancelled.set()
        taken = self._gate.acquire(timeout=GATE_S)
        self._left = True
        if taken:
            self._gate.release()
