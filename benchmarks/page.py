"""Writes docs/benchmarks.md from the JSON files beside this script: python benchmarks/page.py.

A file that is not there leaves dashes in its places; every figure in the page that is ours is
looked up by the template beside this script, none is typed.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "docs" / "benchmarks.md"
NOTHING = "\N{EN DASH}"
OUT = "--out benchmarks"
PROFILES = "python benchmarks/profiles.py"
FILES = {  # by name; the command that makes each
    "engine": f"cagepool bench engine {OUT}/engine.json",
    "workers": f"cagepool bench workers {OUT}/workers.json",
    "scaling": f"cagepool bench scaling {OUT}/scaling.json",
    "true_state": f"cagepool bench true-state {OUT}/true_state.json",
    "stragglers": f"cagepool bench stragglers {OUT}/stragglers.json",
    "memory": f"cagepool bench memory {OUT}/memory.json",
    "sustained": f"cagepool bench sustained {OUT}/sustained.json",
    "cyborg": f"cagepool bench cyborg {OUT}/cyborg.json",
    "train": f"cagepool bench train {OUT}/train.json",
    "profile_train": PROFILES,
    "profile_pipes_20": PROFILES,
    "profile_workers_20": PROFILES,
    "profile_native_20": PROFILES,
}


class File:
    """A JSON file of figures, or the lack of one."""

    def __init__(self, name: str, command: str, folder: Path) -> None:
        """Read it, if it is there."""
        path = folder / f"{name}.json"
        self.name = path.name
        self.command = command
        self.content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def __bool__(self) -> bool:
        return bool(self.content)

    def of(self, *keys: str) -> Any:
        """What stands under these keys, one inside the other; none where it does not."""
        found: Any = self.content
        for key in keys:
            found = found.get(key) if found else None
        return found

    def rows(self, group: str) -> list[dict[str, Any]]:
        """Contenders of a group; none where it is not there."""
        return self.of("groups", group) or []

    def rate(self, group: str, name: str, **settings: object) -> float | None:
        """Median steps a second of the first contender with this name and these settings."""
        for row in self.rows(group):
            if row["name"] == name and all(row.get(k) == v for k, v in settings.items()):
                return float(row["steps_per_second"])
        return None

    def sizes(self, kind: str) -> list[int]:
        """Numbers at the ends of the names of groups of one kind."""
        titles = (title.rpartition(" ") for title in self.of("groups") or ())
        return sorted(int(size) for start, _, size in titles if start == kind)

    def names(self, kind: str) -> list[str]:
        """Contenders in groups of one kind, in order."""
        groups = (self.rows(f"{kind} {size}") for size in self.sizes(kind))
        return list(dict.fromkeys(row["name"] for rows in groups for row in rows))

    def ratio(self, name: str) -> float | None:
        """A figure that claims are made of."""
        return self.of("ratios", name)  # type: ignore[no-any-return]


def count(value: float | None) -> str:
    """About three digits, in thousands or millions."""
    if value is None:
        return NOTHING
    if abs(value) >= 999_500:
        return f"{value / 1e6:,.3g}M" if abs(value) < 1e9 else f"{value / 1e6:,.0f}M"
    if abs(value) >= 1000:
        digits = max(0, len(str(int(abs(value)))) - 3)
        return f"{round(value, -digits):,.0f}"
    return f"{value:.3g}"


def percent(value: float | None) -> str:
    """A share."""
    if value is None:
        return NOTHING
    return f"{100 * value:.0f} %" if value >= 0.1 else f"{100 * value:.2g} %"


def part(value: float | None, whole: float | None) -> float | None:
    """One divided by the other, if both are there."""
    return None if value is None or not whole else value / whole


def times(value: float | None, base: float | None) -> str:
    """How many times as much."""
    found = part(value, base)
    return NOTHING if found is None else f"{count(found)}x"


def _sources(files: dict[str, File]) -> Iterator[dict[str, Any]]:
    for file in files.values():
        if file:
            machine = file.content["machine"]
            busy = file.content.get("busy_elsewhere")
            yield {
                "file": file.name,
                "command": file.command,
                "commit": machine.get("commit"),
                "machine": f"{machine['processor']}, {machine['cores']} cores",
                "load": f"{machine['load']} / {file.content['load_after']}",
                "busy": percent(busy),
            }


def page(folder: Path = FOLDER) -> str:
    """The page that the files in a folder give."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # it is Markdown
    )
    environment.filters.update(count=count, percent=percent)
    files = {name: File(name, command, folder) for name, command in FILES.items()}
    missing = [file for file in files.values() if not file]
    text = environment.get_template("page.md").render(
        **files, times=times, part=part, sources=list(_sources(files)), missing=missing
    )
    return re.sub(r"\n{3,}", "\n\n", text.strip()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE)
