"""Makes the profiles of docs/profiling.md, and fills them into that page.

Run it as python benchmarks/profiles.py on a machine that does nothing else; with --page it only
fills in what is there.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cagepool.report.profiles import filled

FOLDER = Path(__file__).parent
DOCS = FOLDER.parent / "docs"
PAGE = DOCS / "profiling.md"
CARRIED = "--n-envs 20 --true-state every"
WHAT = {
    "profile_train": "train --total-episodes 5000 --n-envs 100",
    "profile_async": "train --total-episodes 5000 --n-envs 100 --async",
    "profile_order": "train --fixed-episodes 5000 --n-envs 100 --order critical_first",
    "profile_native": "step --n-envs 100 --steps 200000",
    "profile_native_20": f"step {CARRIED} --steps 200000",
    "profile_sync_20": f"step {CARRIED} --steps 5000 --backend sync",
    "profile_workers_20": f"step {CARRIED} --steps 20000 --backend workers",
    "profile_pipes_20": f"step {CARRIED} --steps 2000 --backend pipes",
}
PICTURES = ("profile_train",)


def main() -> None:
    """Measure if that is wanted, and write the page."""
    if "--page" not in sys.argv[1:]:
        measure()
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), profiles()), encoding="utf-8")


def measure() -> None:
    """Make all profiles, and only then put them in their places: a commit counts as unchanged."""
    with TemporaryDirectory() as folder:
        for name, options in WHAT.items():
            make(name, options, Path(folder))
        for file in Path(folder).iterdir():
            shutil.copy(file, DOCS if file.suffix == ".svg" else FOLDER)


def make(name: str, options: str, folder: Path) -> None:
    """Make one profile."""
    flags = ["--out", str(folder / f"{name}.json")]
    if name in PICTURES:
        flags += ["--picture", str(folder / f"{name}.svg")]
    print(f"cagepool profile -- {options}", flush=True)
    command = [sys.executable, "-m", "cagepool", "profile", *flags, "--", *options.split()]
    subprocess.run(command, check=True)


def profiles() -> dict[str, Any]:
    """Those that are there, by name."""
    found = (FOLDER / f"{name}.json" for name in WHAT)
    return {file.stem: json.loads(file.read_text()) for file in found if file.exists()}


if __name__ == "__main__":
    main()
