"""How a cluster is divided among actors, worked by hand."""

from __future__ import annotations

import pytest

from app.cluster.machines import Machine, Share, shared
from indexes.errors import SettingError

GIB = 2**30


@pytest.mark.parametrize(
    ("nodes", "wanted", "expected"),
    [
        ([Machine(2, 0, 16 * GIB)], None, Share(1, 2)),
        ([Machine(16, 0, 64 * GIB)], None, Share(4, 4)),
        ([Machine(16, 0, 5 * GIB)], None, Share(2, 8)),  # two of 2 GiB fit
        ([Machine(1, 0, GIB)] * 3, None, Share(3, 1)),
        ([Machine(0, 0, GIB), Machine(8, 0, 64 * GIB)], None, Share(2, 4)),  # a head that offers nothing
        ([Machine(8, 0, 64 * GIB), Machine(4, 0, 64 * GIB)], None, Share(3, 4)),
        ([Machine(8, 0, 64 * GIB)], 3, Share(3, 2)),
        ([Machine(2, 0, 64 * GIB)], 4, Share(4, 0.5)),
    ],
)
def test_cores_are_divided_by_fours_as_far_as_memory_goes(
    nodes: list[Machine], wanted: int | None, expected: Share
) -> None:
    assert shared(nodes, wanted, False, 2 * GIB) == expected


@pytest.mark.parametrize(("wanted", "expected"), [(None, Share(3, 1, 1)), (2, Share(2, 1, 1)), (6, Share(6, 1, 0.5))])
def test_every_gpu_has_an_actor_unless_others_are_wanted(wanted: int | None, expected: Share) -> None:
    assert shared([Machine(8, 2, GIB), Machine(8, 1, GIB)], wanted, True, 2 * GIB) == expected


def test_a_cluster_without_what_is_needed_is_refused() -> None:
    with pytest.raises(SettingError, match="no machine of the Ray cluster offers a GPU"):
        shared([Machine(8, 0, GIB)], None, True, GIB)
