"""Time `Batch.step` of the build in a folder: time_batch.py FOLDER LIBRARIES GAMES RED."""

import sys
from pathlib import Path

folder, libraries, games, red = sys.argv[1:]
sys.path[:0] = [folder, libraries]

from cagepool.bench import engine  # noqa: E402 - from that folder

assert Path(engine.__file__).is_relative_to(Path(folder).resolve()), engine.__file__
timer = engine.batch_timer(int(games), red=red, threads=1)
for line in sys.stdin:
    sys.stdout.write(f"{timer(int(line))}\n")
    sys.stdout.flush()
