"""Tells the memory of environments in a fresh process: memory.py BACKEND COUNT WORKERS STEPS.

Writes a line of JSON once they have been stepped a little, and another after so many steps more.
"""

import json
import sys
from typing import Any

import numpy as np

from cagepool.bench.processes import family, memory_bytes
from cagepool.envs import make_vec

WARM_UP = 200  # steps of each environment: two episodes


def tell() -> None:
    """Write what this process and its children hold now."""
    pids = list(family())
    kinds = {"once": "Pss", "resident": "Rss", "shared": "Pss_Shmem"}
    held = {name: memory_bytes(pids, kind) for name, kind in kinds.items()}
    sys.stdout.write(json.dumps({**held, "processes": len(pids)}) + "\n")
    sys.stdout.flush()


def main(backend: Any, environments: int, workers: int, steps: int) -> None:
    """Make environments, step them, tell, step them on, tell."""
    settings: Any = {"workers": workers} if backend == "workers" else {}
    envs = make_vec(environments, backend=backend, **settings)
    envs.reset(seed=0)
    actions = np.zeros(environments, np.int64)
    for _ in range(WARM_UP):
        envs.step(actions)
    tell()
    for _ in range(steps // environments):
        envs.step(actions)
    tell()
    envs.close()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
