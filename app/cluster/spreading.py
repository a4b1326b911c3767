"""Items spread over a Ray cluster with Ray Data: each worked on by a task, or by one of a pool of actors.

A node or an actor that is lost takes its items with it, and what has not come back is begun again, in another pass over
those that are left. Ray could restart a lost actor by itself, but if the dead node's place is nowhere else to be had it
waits for one without end; the next pass takes as many actors as there is room for then.
Knows nothing of documents, questions or models.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.cluster.machines import Share
from indexes.errors import ClusterError, QuotewrightError

Work = Callable[[Any], Any]
MOST_IDLE = 3  # passes in a row that brought nothing: then the work itself is what kills actors
ITEMS_PER_TASK = 8
IN_FLIGHT_PER_ACTOR = 2  # one to work on, one at hand


@dataclass(frozen=True, slots=True)
class Carried:
    """A value in a row of Ray Data's, which would take lists and arrays apart."""

    value: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """What a worker raised. The error itself stays there: not every error can be sent."""

    message: str


class Actor:
    """Makes what works once, with the first item, and has it do item after item."""

    def __init__(self, make: Callable[[], Work]) -> None:
        self._make = make
        self._work: Work | None = None

    def __call__(self, rows: dict[str, Any]) -> dict[str, Any]:
        """The results of some items."""
        return rows | {"item": [Carried(self._result(item.value)) for item in rows["item"]]}

    def _result(self, item: Any) -> Any:
        try:
            if self._work is None:
                self._work = self._make()
            return self._work(item)
        except Exception as error:  # raised on the machine where the command runs
            kind = "" if isinstance(error, QuotewrightError) else f"{type(error).__name__}: "
            return Failed(f"{kind}{error}, on {socket.gethostname()}")


def spread(
    make: Callable[[], Work],
    items: Sequence[Any],
    share: Callable[[], Share] | None,
    say: Callable[[str], None],
    ordered: bool = True,
) -> Iterator[tuple[int, Any]]:
    """What `make()` makes of each item, with the item's number: in order, or as it comes. Each number comes once.

    `share` says how the pool of actors divides the cluster, as it is when a pass begins; without it tasks do the work.
    Raises ClusterError for what a worker raised, or when passes bring nothing any more.
    """
    left, idle = dict(enumerate(items)), 0
    while left:
        before, now = len(left), share and share()
        if now and idle and len(left) <= now.actors:  # one by one, so that what kills is alone at last
            now = replace(now, actors=1)
        try:
            for number, result in _pass(make, left, now, ordered):
                if isinstance(result, Failed):
                    raise ClusterError(result.message)
                if left.pop(number, None) is not None:
                    yield number, result
            if left:
                raise RuntimeError("rows are missing")
        except QuotewrightError:
            raise
        except Exception as error:  # whatever Ray Data raises: workers' own errors are results
            idle = 0 if len(left) < before else idle + 1
            if idle == MOST_IDLE:
                raise ClusterError(
                    f"Ray lost its workers {idle} times without a result ({_told(error)}); {len(left)} are not done"
                ) from error
            say(f"Ray lost a worker ({_told(error)}); {len(left)} are left, and go to the others")
            if now and not ordered:  # what was being worked on goes last: it may be what kills
                left |= {number: left.pop(number) for number in list(left)[: now.actors]}


def _pass(
    make: Callable[[], Work], left: dict[int, Any], share: Share | None, ordered: bool
) -> Iterator[tuple[int, Any]]:
    """Numbers and results of what is left, as long as no worker is lost."""
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = ordered
    rows = [{"number": number, "item": Carried(item)} for number, item in left.items()]
    if share is None:
        blocks = ray.data.from_items(rows, override_num_blocks=-(-len(rows) // ITEMS_PER_TASK))
        done = blocks.map_batches(Actor(make).__call__)
    else:
        pool = ray.data.ActorPoolStrategy(
            size=min(share.actors, len(rows)), max_tasks_in_flight_per_actor=IN_FLIGHT_PER_ACTOR
        )
        done = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            Actor, fn_constructor_args=[make], compute=pool,
            num_cpus=share.num_cpus, num_gpus=share.num_gpus or None, max_restarts=0,
        )  # fmt: skip
    for batch in done.iter_batches(batch_size=None, prefetch_batches=0, batch_format="numpy"):
        yield from ((int(number), item.value) for number, item in zip(batch["number"], batch["item"], strict=True))


def _told(error: Exception) -> str:
    """An error's last line: those before it are a traceback, if there are any."""
    *_, last = ["", *str(error).strip().splitlines()]
    return f"{type(error).__name__}: {last}"[:300]
