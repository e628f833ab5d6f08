"""Clusters of several raylets on this machine."""

import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import ray
from ray.cluster_utils import Cluster

# A dead node is noticed soon, but a busy machine is not taken for dead.
SYSTEM = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3, "worker_niceness": 0}
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 1024**2}


class TwoNodes:
    """A head, to which this process is connected, and a node that may be killed."""

    def __init__(self) -> None:
        head = {**NODE, "include_dashboard": False, "_system_config": SYSTEM}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address = self._cluster.address
        self.node = self._cluster.add_node(**NODE)

    def alive(self) -> int:
        """How many nodes there are."""
        return sum(node["Alive"] for node in ray.nodes())

    def kill_node(self) -> None:
        self._cluster.remove_node(self.node, allow_graceful=False)

    def replace_node(self) -> None:
        self.node = self._cluster.add_node(**NODE)

    def close(self) -> None:
        self._cluster.shutdown()


@contextmanager
def loose_ends() -> Iterator[None]:
    """Ray does not wait for the last of its processes; Python must not complain in a later test."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@contextmanager
def two_nodes() -> Iterator[TwoNodes]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with loose_ends(), closing(TwoNodes()) as cluster:
        ray.init(cluster.address, log_to_driver=False)
        try:
            yield cluster
        finally:
            ray.shutdown()
