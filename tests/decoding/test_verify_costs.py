"""What passes cost: measured with a clock of our own, interpolated and followed, worked by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest

from decoding.verify_costs import VerifyCosts, VerifyTimes, measure_costs
from indexes.errors import SettingError
from tests.decoding.tiny import CONTEXT, tiny_target


def ticking(step_s: float) -> Callable[[], float]:
    """A clock that goes on by as much every time it is read."""
    return itertools.count(0.0, step_s).__next__


def test_between_two_measured_sizes_lies_the_line_through_them() -> None:
    costs = VerifyCosts((0, 2, 4), (1.0, 3.0, 2.0))
    assert [costs.at(nodes) for nodes in range(5)] == [1.0, 2.0, 3.0, 2.5, 2.0]


def test_beyond_the_last_size_goes_on_the_line_from_plain_decoding() -> None:
    assert VerifyCosts((0, 2, 4), (1.0, 9.0, 2.0)).at(8) == 3.0
    assert VerifyCosts((0, 4), (2.0, 1.5)).at(100) == 1.5
    assert VerifyCosts((0,), (2.0,)).at(7) == 2.0


@pytest.mark.parametrize("nodes", [(), (1, 2), (0, 2, 2), (0, 3, 1)])
def test_sizes_that_do_not_ascend_from_0_are_refused(nodes: tuple[int, ...]) -> None:
    with pytest.raises(SettingError, match="must ascend from 0"):
        VerifyCosts(nodes, (1.0,) * len(nodes))


@pytest.mark.parametrize("seconds", [(1.0,), (1.0, 0.0), (1.0, -1.0), (1.0, math.nan), (1.0, math.inf)])
def test_times_that_are_none_are_refused(seconds: tuple[float, ...]) -> None:
    with pytest.raises(SettingError, match="must hold 2 times above zero"):
        VerifyCosts((0, 1), seconds)


def test_every_size_up_to_the_most_is_measured() -> None:
    costs = measure_costs(tiny_target("llama"), 20)
    assert costs.nodes == (0, 1, 2, 3, 4, 6, 8, 12, 16, 20)


def test_the_time_of_a_size_is_that_between_two_looks_at_the_clock() -> None:
    assert set(measure_costs(tiny_target("llama"), 4, clock=ticking(0.25), limit_s=1e9).seconds) == {0.25}


def test_a_model_too_slow_to_time_everything_gets_a_few_sizes() -> None:
    assert measure_costs(tiny_target("llama"), 40, limit_s=1.0, clock=ticking(5.0)).nodes == (0, 1, 2, 8)


def test_no_more_is_measured_than_half_the_context_holds() -> None:
    assert measure_costs(tiny_target("llama"), 1000).nodes[-1] == CONTEXT // 2 - 1


def test_with_no_nodes_only_plain_passes_are_measured() -> None:
    assert measure_costs(tiny_target("llama"), 0).nodes == (0,)


def test_a_measurement_leaves_the_targets_cache_empty() -> None:
    measure_costs(tiny_target("llama"), 4)
    assert tiny_target("llama").length == 0


def test_a_pace_common_to_all_passes_slows_those_not_seen_as_well() -> None:
    times = VerifyTimes(VerifyCosts((0, 8), (1.0, 2.0)))
    for _ in range(100):
        times.observe(0, 1.5)
    assert times.at(0) == pytest.approx(1.5, rel=0.01)
    assert 2.3 < times.at(8) < 3.1


def test_a_size_that_proves_dearer_than_measured_is_believed_dearer_than_others() -> None:
    times = VerifyTimes(VerifyCosts((0, 8), (1.0, 1.0)))
    for _ in range(200):
        times.observe(0, 1.0)
        times.observe(8, 1.6)
    assert times.at(8) / times.at(0) > 1.4


def test_one_pass_that_takes_for_ever_is_soon_forgotten() -> None:
    times = VerifyTimes(VerifyCosts((0, 8), (1.0, 2.0)))
    times.observe(0, 1000.0)
    assert times.at(0) < 1.25
    for _ in range(20):
        times.observe(0, 1.0)
    assert times.at(0) == pytest.approx(1.0, abs=0.02)
    assert times.at(8) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan])
def test_a_clock_that_stood_still_teaches_nothing(seconds: float) -> None:
    times = VerifyTimes(VerifyCosts((0, 8), (1.0, 2.0)))
    times.observe(0, seconds)
    assert times.at(0) == 1.0


def test_after_reset_the_measurement_is_believed_again() -> None:
    times = VerifyTimes(VerifyCosts((0, 8), (1.0, 2.0)))
    times.observe(8, 9.0)
    times.reset()
    assert times.at(8) == 2.0
