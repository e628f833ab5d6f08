"""Process of one run of a study: `python -m cagepool.study.worker STUDY SETTING SEED`.

It writes one JSON line per event to standard output, stops after an update when it reads a line
from standard input, and ends at once when standard input closes: its parent is gone.
"""

import json
import os
import sys
import threading
import time
import traceback
from pathlib import Path

from cagepool import runs
from cagepool.runs.study_schema import STUDY, StudyFile
from cagepool.study.executors import one_line
from cagepool.study.folder import open_training
from cagepool.study.run import play_run

LOCK_SECONDS = 10.0  # for which a process of the same run, whose parent was killed, may go on
REPORT_SECONDS = 0.25  # between two events about progress
ERROR = "error.txt"


def main(study_path: Path, setting: str, seed: int) -> int:
    """Play the run; returns the exit code."""
    report = _Report()
    stop = threading.Event()
    threading.Thread(target=_watch_parent, args=(stop,), daemon=True).start()
    study = runs.read_if_exists(study_path / STUDY, StudyFile)
    assert study, "the parent has written the file"
    run = open_training(study_path, study, setting, seed)
    try:
        is_complete = _play_when_unlocked(run, study, report, stop)
    except Exception as error:  # noqa: BLE001 - of a network or a reward function of the user
        (run.path / ERROR).write_text(traceback.format_exc(), encoding="utf-8")
        report.write(error=one_line(error))
        return 1
    (run.path / ERROR).unlink(missing_ok=True)
    report.write(complete=is_complete)
    return 0


def _play_when_unlocked(
    run: runs.Run, study: StudyFile, report: "_Report", stop: threading.Event
) -> bool:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            with run.lock():
                break
        except ValueError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    return play_run(run, study.protocol, report.write_episodes, stop.is_set)


def _watch_parent(stop: threading.Event) -> None:
    if sys.stdin.readline():
        stop.set()
        sys.stdin.readline()
    os._exit(1)


class _Report:
    """Events for the parent. What else is printed, by code of the user, goes to standard error."""

    def __init__(self) -> None:
        self._written_at = 0.0
        self._file = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def write(self, **event: object) -> None:
        self._file.write(json.dumps(event) + "\n")
        self._file.flush()

    def write_episodes(self, episodes: int) -> None:
        now = time.monotonic()
        if now - self._written_at >= REPORT_SECONDS:
            self._written_at = now
            self.write(episodes=episodes)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
