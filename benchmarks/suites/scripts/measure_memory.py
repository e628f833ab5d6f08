"""Measure the memory of environments in a new process: BACKEND ENVIRONMENTS WORKERS STEPS.

Writes a line of JSON after the warm-up, and another after STEPS environment steps.
"""

import json
import sys
from typing import Any

import numpy as np
import psutil

from cagepool.bench.system_load import memory_bytes, process_tree
from cagepool.envs import make_vec

WARM_UP = 200  # steps per environment: two episodes


def shared_bytes(process: psutil.Process) -> int:
    """Memory of a process in shared blocks."""
    maps = process.memory_maps()
    return sum(one.rss for one in maps if one.path.startswith(("/memfd:", "/dev/shm/")))


def report() -> None:
    """Write the memory of this process and its descendants."""
    processes = process_tree()
    resident = [process.memory_info() for process in processes]
    content = {
        "bytes": memory_bytes(processes),
        "resident_bytes": sum(info.rss for info in resident),
        "shared_bytes": max(map(shared_bytes, processes)),
        "processes": len(processes),
    }
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def main(backend: Any, environments: int, workers: int, steps: int) -> None:
    """Step environments and report their memory twice."""
    settings: Any = {"workers": workers} if backend == "workers" else {}
    envs = make_vec(environments, backend=backend, **settings)
    envs.reset(seed=0)
    actions = np.zeros(environments, np.int64)
    for _ in range(WARM_UP):
        envs.step(actions)
    report()
    for _ in range(steps // environments):
        envs.step(actions)
    report()
    envs.close()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
