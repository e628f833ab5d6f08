"""Make the profiles of docs/profiling.md and write them into the page as tables.

Run it as python -m benchmarks.profiles on an idle machine; with --page it only writes the tables.
"""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.blocks import fill_blocks, markdown_table
from cagepool.bench.profile import STAGES, Profile, read_profile

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "profiling.md"
BACKENDS = "--n-envs 20 --true-state every"
COMMANDS = {
    "profile_train": "train --total-episodes 5000 --n-envs 100",
    "profile_async": "train --total-episodes 5000 --n-envs 100 --async",
    "profile_order": "train --fixed-episodes 5000 --n-envs 100 --order critical_first",
    "profile_native": "step --n-envs 100 --steps 200000",
    "profile_native_20": f"step {BACKENDS} --steps 200000",
    "profile_sync_20": f"step {BACKENDS} --steps 5000 --backend sync",
    "profile_workers_20": f"step {BACKENDS} --steps 20000 --backend workers",
    "profile_pipes_20": f"step {BACKENDS} --steps 2000 --backend pipes",
}


def main() -> None:
    """Make the profiles, unless only the page is wanted, and write the page."""
    if "--page" not in sys.argv[1:]:
        make_profiles()
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8"), read_profiles()), encoding="utf-8")


def make_profiles() -> None:
    """Make all profiles and then copy them, so that all name the same unchanged commit."""
    with TemporaryDirectory() as folder:
        for name, options in COMMANDS.items():
            out = Path(folder) / f"{name}.json"
            command = [sys.executable, "-m", "cagepool", "profile", "--out", str(out), "--"]
            print(f"cagepool profile -- {options}", flush=True)
            subprocess.run([*command, *options.split()], check=True)
        for file in Path(folder).iterdir():
            shutil.copy(file, RESULTS)


def read_profiles(folder: Path = RESULTS) -> dict[str, Profile]:
    """Read the existing profiles, by name."""
    paths = (folder / f"{name}.json" for name in COMMANDS)
    return {path.stem: read_profile(path) for path in paths if path.exists()}


def fill_page(page: str, profiles: Mapping[str, Profile]) -> str:
    """Replace the content of each marked section by the tables of the profiles it names.

    Raises:
        KeyError: a profile is missing.
    """

    def tables(names: str) -> str:
        return to_markdown({name: profiles[name] for name in names.split(", ")})

    return fill_blocks(page, "profiles", tables)


def to_markdown(profiles: Mapping[str, Profile]) -> str:
    """One table of stages, and one of the other figures."""
    columns = {name.removeprefix("profile_"): profile for name, profile in profiles.items()}
    rows = {
        "wall time, seconds": lambda profile: f"{profile.wall_seconds:.2f}",
        "steps of all environments": lambda profile: f"{profile.steps:,}",
        "environments": lambda profile: f"{profile.environments:,}",
        "messages per step": lambda profile: _number(profile.traffic.messages, 1),
        "bytes in messages per step": lambda profile: _number(profile.traffic.message_bytes),
        "bytes in arrays per step": lambda profile: _number(profile.traffic.array_bytes),
        "stages recorded": lambda profile: f"{profile.overhead.entries:,}",
        "microseconds per stage": lambda profile: f"{1e6 * profile.overhead.seconds_per_entry:.2f}",
        "recorded share of the wall time": lambda profile: _percent(
            profile.overhead.recorded_share, 0
        ),
        "overhead": lambda profile: _percent(profile.overhead.share),
        "machine used by other processes": lambda profile: _percent(profile.busy_elsewhere, 0),
        "commit": lambda profile: f"`{profile.machine['commit']}`",
    }
    figures = [[name, *map(show, columns.values())] for name, show in rows.items()]
    stages = _stage_rows(list(columns.values()))
    titles = [*columns]
    tables = (
        markdown_table(["microseconds per step (share)", *titles], stages, aligns_numbers=True),
        markdown_table(["", *titles], figures, aligns_numbers=True),
    )
    return "\n\n".join(tables)


def _stage_rows(profiles: Sequence[Profile]) -> list[list[str]]:
    names = [name for name in STAGES if any(name in profile.stages for profile in profiles)]
    rows = [
        [name, *(_amount(profile, profile.stages.get(name)) for profile in profiles)]
        for name in names
    ]
    return [
        *rows,
        ["**wall time**", *(_amount(profile, profile.wall_seconds) for profile in profiles)],
    ]


def _amount(profile: Profile, seconds: float | None) -> str:
    if seconds is None:
        return ""
    share = _percent(seconds / profile.wall_seconds, 1)
    return f"{1e6 * seconds / profile.steps:,.2f} ({share})"


def _number(value: float | None, digits: int = 0) -> str:
    return "not counted" if value is None else f"{value:,.{digits}f}"


def _percent(share: float | None, digits: int = 2) -> str:
    return "unknown" if share is None else f"{100 * share:.{digits}f} %"


if __name__ == "__main__":
    main()
