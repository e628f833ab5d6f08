"""Ray cluster with two nodes (raylets) on this machine."""

import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import ray
from ray.cluster_utils import Cluster

# A dead node is detected within seconds, and a busy one is not taken for dead.
SYSTEM = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3, "worker_niceness": 0}
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 1024**2}


class TwoNodes:
    """A head node and a second node that tests kill."""

    def __init__(self) -> None:
        head = {**NODE, "include_dashboard": False, "_system_config": SYSTEM}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address = self._cluster.address
        self.node = self._cluster.add_node(**NODE)

    def alive_nodes(self) -> int:
        """Number of nodes that are alive."""
        return sum(node["Alive"] for node in ray.nodes())

    def kill_node(self) -> None:
        self._cluster.remove_node(self.node, allow_graceful=False)

    def replace_node(self) -> None:
        self.node = self._cluster.add_node(**NODE)

    def close(self) -> None:
        self._cluster.shutdown()


@contextmanager
def ignore_leaked_processes() -> Iterator[None]:
    """Ignore the ResourceWarnings of processes that Ray does not wait for."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@contextmanager
def two_nodes() -> Iterator[TwoNodes]:
    """Start the cluster and connect this process to its head."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with ignore_leaked_processes(), closing(TwoNodes()) as cluster:
        ray.init(cluster.address, log_to_driver=False)
        try:
            yield cluster
        finally:
            ray.shutdown()
