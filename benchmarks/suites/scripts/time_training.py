"""Time the trainer of the build in a folder: time_training.py FOLDER LIBRARIES WORK THREADS.

A call is a rollout (WORK collection) or a rollout and its update (training).
"""

import sys
from contextlib import ExitStack
from pathlib import Path

folder, libraries, work, threads = sys.argv[1:]
sys.path[:0] = [folder, libraries]

from cagepool.bench import train  # noqa: E402 - from that folder

assert Path(train.__file__).is_relative_to(Path(folder).resolve()), train.__file__
make = train.rollout_contender if work == "collection" else train.trainer_contender
config = train.TrainBenchConfig().train_config(threads=int(threads))
with ExitStack() as stack:
    timer = make("other build", config, stack).timer
    for line in sys.stdin:
        sys.stdout.write(f"{timer(int(line))}\n")
        sys.stdout.flush()
