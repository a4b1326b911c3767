"""A real cluster of three nodes on this machine, whose nodes can be killed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from app.cluster.session import AUTH_MODE, NOT_NICE, NOTHING_SENT, ON_LOOPBACK, TOKEN

NODES = 3
SMALL = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "node_ip_address": "127.0.0.1", "include_dashboard": False}
# A node that is gone is missed after two seconds, not after half a minute.
SOON = {
    "health_check_initial_delay_ms": 0, "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000, "health_check_failure_threshold": 4,
}  # fmt: skip


class Nodes:
    """The nodes of a cluster; `address` is where it is joined, with the token in the environment."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._cluster: Any = Cluster(initialize_head=True, head_node_args=SMALL | {"_system_config": SOON})
        self.complete()

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def complete(self) -> None:
        """Have all nodes again."""
        while len(self._cluster.worker_nodes) < NODES - 1:
            self._cluster.add_node(**SMALL)

    def kill(self) -> None:
        """SIGKILL a node that is not the one of the command; its workers end with it."""
        self._cluster.remove_node(next(iter(self._cluster.worker_nodes)), allow_graceful=False)

    def end(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="package")
def cluster() -> Iterator[Nodes]:
    """Three nodes with one core each, which want a token."""
    environment = NOTHING_SENT | NOT_NICE | ON_LOOPBACK | {AUTH_MODE: "token", TOKEN: secrets.token_hex(32)}
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment.items():
            patched.setenv(name, value)  # before Ray is imported
        nodes = Nodes()
        yield nodes
        nodes.end()


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Actors have a core each; what is compared with them here has the same."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    assert os.environ.get("RAY_ADDRESS") is None
