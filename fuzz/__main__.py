"""Runs the harnesses side by side, each in a process of its own, and reports what they found."""

import argparse
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from secrets import randbelow

import numpy as np

from fuzz.worker import run_cases, run_one

HARNESSES = ("snapshots", "traces", "api", "run_folders", "scenarios")
FAILURES = Path("build/fuzz").absolute()
HANG_S = 120.0  # a case takes milliseconds
REPORT_S = 10.0


@dataclass
class HarnessRun:
    """One harness in its process, its output and its current case."""

    harness: str
    seed: int
    progress: Path
    output: Path
    process: "subprocess.Popen[bytes]"
    case: int = 0
    case_since_s: float = 0.0

    def poll(self) -> int | None:
        """Read the current case; return the exit code if the process ended, -9 after a hang."""
        code = self.process.poll()
        case = int(np.fromfile(self.progress, np.int64)[0])
        now = time.monotonic()
        if case != self.case or not self.case_since_s:
            self.case, self.case_since_s = case, now
        if code is None and now - self.case_since_s > HANG_S:
            self.process.kill()
            return self.process.wait()
        return code


def main() -> int:
    """Parse the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("harnesses", nargs="*", default=HARNESSES, help="default: all")
    parser.add_argument("--minutes", type=float, default=1.0, help="wall time")
    parser.add_argument("--seed", type=int, help="default: drawn, and printed")
    parser.add_argument("--case", type=int, help="run this case of one harness again")
    parser.add_argument("--progress", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.harnesses) - {*HARNESSES, "self_test"}:
        parser.error(f"harness must be one of {', '.join(HARNESSES)}; got {', '.join(unknown)}")
    if options.case is not None:
        run_one(options.harnesses[0], options.seed, options.case)
        return 0
    if options.progress is not None:
        seconds = 60 * options.minutes
        run_cases(options.harnesses[0], options.seed, seconds, options.progress)
        return 0
    seed = randbelow(2**32) if options.seed is None else options.seed
    return fuzz(options.harnesses, seed, options.minutes)


def fuzz(harnesses: list[str], seed: int, minutes: float) -> int:
    """Run the harnesses; returns 1 if one of them failed."""
    print(f"seed {seed}, {minutes:g} minutes, {', '.join(harnesses)}", flush=True)
    FAILURES.mkdir(parents=True, exist_ok=True)
    running = [_start(harness, seed, minutes) for harness in harnesses]
    finished: list[tuple[HarnessRun, int]] = []
    reported_s = time.monotonic()
    while running:
        time.sleep(0.2)
        for run in list(running):
            if (code := run.poll()) is not None:
                running.remove(run)
                finished.append((run, code))
                if code:
                    _report_failure(run, code)
        if time.monotonic() - reported_s > REPORT_S:
            reported_s = time.monotonic()
            print(*(f"{run.harness} {run.case:,}" for run in running), sep="  ", flush=True)
    for run, code in finished:
        print(f"{run.harness}: {run.case:,} cases, {'FAILED' if code else 'nothing found'}")
    return int(any(code for _, code in finished))


def _start(harness: str, seed: int, minutes: float) -> HarnessRun:
    progress = FAILURES / f"{harness}.progress"
    np.zeros(1, np.int64).tofile(progress)
    output = FAILURES / f"{harness}.output"
    arguments = [harness, "--seed", seed, "--minutes", minutes, "--progress", progress]
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*_python(), "-m", "fuzz", *map(str, arguments)], stdout=file, stderr=file
        )
    return HarnessRun(harness, seed, progress, output, process)


def _python() -> list[str]:
    """Command of this interpreter; the sanitized build is used without `site`."""
    return [sys.executable, *(["-S"] if sys.flags.no_site else []), "-X", "faulthandler"]


def _report_failure(run: HarnessRun, code: int) -> None:
    """Save what is needed to see the failure again, and print where it is."""
    command = f"make fuzz CASE={shlex.quote(f'{run.harness} --seed {run.seed} --case {run.case}')}"
    text = run.output.read_text(errors="replace")
    path = FAILURES / f"{run.harness}-{run.seed}-{run.case}.txt"
    path.write_text(f"{command}\nexit code {code}\n\n{text}")
    print(f"{run.harness} failed in case {run.case} (exit code {code}): {path}")
    print("\n".join(text.splitlines()[-25:]))
    print(f"again: {command}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
