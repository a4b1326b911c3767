"""How a pool of actors divides a cluster: how many fit, and what each may take.

One actor a GPU; without GPUs one for every four cores of a machine, as far as its memory goes, and at least one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from indexes.errors import SettingError

CORES_PER_ACTOR = 4


@dataclass(frozen=True, slots=True)
class Machine:
    """What a node of a cluster offers to Ray's workers."""

    cpus: float
    gpus: float
    memory_bytes: float


@dataclass(frozen=True, slots=True)
class Share:
    """So many actors, each with so many CPUs and GPUs."""

    actors: int
    num_cpus: float
    num_gpus: float = 0


def machines() -> list[Machine]:
    """The nodes of the cluster that are alive."""
    import ray

    offers = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return [Machine(offer.get("CPU", 0), offer.get("GPU", 0), offer.get("memory", 0)) for offer in offers]


def shared(nodes: Sequence[Machine], wanted: int | None, on_gpus: bool, memory_bytes: float) -> Share:
    """How the nodes are divided among `wanted` actors, or as many as fit if each takes so much memory.

    Raises SettingError for a cluster that has nothing to divide.
    """
    what = "GPU" if on_gpus else "CPU"
    offers = [node.gpus if on_gpus else node.cpus for node in nodes]
    if not sum(offers):
        raise SettingError(f"no machine of the Ray cluster offers a {what}; start one that does")
    if on_gpus:
        actors = wanted or max(1, int(sum(offers)))
        return Share(actors, 1, _largest(offers, actors))
    each = [max(1, int(min(node.cpus // CORES_PER_ACTOR, node.memory_bytes // memory_bytes))) for node in nodes]
    actors = wanted or sum(fit for fit, offer in zip(each, offers, strict=True) if offer)
    return Share(actors, _largest(offers, actors))


def _largest(offers: Sequence[float], actors: int) -> float:
    """The largest share that the nodes hold so many of: whole ones, or a part of one if there are not enough."""
    parts = (10_000 // part / 10_000 for part in itertools.count(2))  # Ray counts in ten-thousandths
    for size in itertools.chain(range(int(max(offers)), 0, -1), parts):
        if sum(int(offer / size) for offer in offers) >= actors:
            return size
    raise AssertionError("offers are not empty")
