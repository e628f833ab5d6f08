"""A small Ray cluster without usage reports, for tests of RLlib."""

import logging
from collections.abc import Iterator

import pytest
import ray
import torch


@pytest.fixture(scope="module")
def ray_here() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # a low priority would starve the workers
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=100 * 2**20,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # two threads would spin and stall on a busy machine
        yield
        torch.set_num_threads(threads)
        ray.shutdown()
