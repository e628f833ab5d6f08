"""Write docs/benchmarks.md from benchmarks/results and the template page.md.

Run it as python -m benchmarks.page. The template looks up all figures; missing files leave dashes.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jinja2

from cagepool.bench.schema import Measurement, read_result

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
PAGE = FOLDER.parent / "docs" / "benchmarks.md"
NOTHING = "\N{EN DASH}"
OUT = "--out benchmarks/results"
BENCHES = {  # commands by file name
    **{
        name: f"cagepool bench {name} {OUT}/{name}.json"
        for name in ("engine", "workers", "scaling", "stragglers", "train")
    },
    **{
        name: f"python -m benchmarks {name}"
        for name in ("engine_peers", "true_state", "memory", "sustained", "cyborg")
    },
}


class Source:
    """The file of a bench, which may be missing."""

    def __init__(self, path: Path, command: str) -> None:
        """Read the file."""
        self.file = path.name
        self.command = command
        self.content = read_result(path) if path.exists() else None

    def __bool__(self) -> bool:
        return self.content is not None

    @property
    def groups(self) -> Mapping[str, list[Measurement]]:
        """Groups by name."""
        return self.content.groups if self.content else {}

    @property
    def ratios(self) -> Mapping[str, float]:
        """Ratios by name."""
        return self.content.ratios if self.content else {}

    def fact(self, name: str) -> Any:
        """Fact of the bench."""
        return self.content.facts[name] if self.content else None

    def rate(self, group: str, name: str, **settings: object) -> float | None:
        """Median steps per second of the first contender with this name and these settings."""
        for measurement in self.groups.get(group, []):
            if measurement.matches(name, settings):
                return measurement.steps_per_second
        return None

    def auto_share(self, group: str) -> str:
        """Share of the fastest backend that `auto` reached in a group, and its choice."""
        for name, ratio in self.ratios.items():
            if name.startswith(f"{group}: auto "):
                choice = name.partition("(")[2].partition(")")[0]
                return f"{ratio:.2f} ({choice})"
        return NOTHING

    def sizes(self, kind: str) -> list[int]:
        """Numbers at the end of the names of the groups of a kind."""
        titles = (title.rpartition(" ") for title in self.groups)
        return sorted(int(size) for start, _, size in titles if start == kind)

    def names(self, kind: str) -> list[str]:
        """Contenders of the groups of a kind."""
        groups = (self.groups[f"{kind} {size}"] for size in self.sizes(kind))
        return list(dict.fromkeys(measurement.name for group in groups for measurement in group))


def count(value: float | None) -> str:
    """Format with about three digits, in thousands or millions."""
    if value is None:
        return NOTHING
    if abs(value) >= 999_500:
        return f"{value / 1e6:,.3g}M" if abs(value) < 1e9 else f"{value / 1e6:,.0f}M"
    if abs(value) >= 1000:
        digits = max(0, len(str(int(abs(value)))) - 3)
        return f"{round(value, -digits):,.0f}"
    return f"{value:.3g}"


def percent(value: float | None) -> str:
    """Format a share."""
    if value is None:
        return NOTHING
    return f"{100 * value:.0f} %" if value >= 0.1 else f"{100 * value:.2g} %"


def quotient(value: float | None, base: float | None) -> float | None:
    """Divide, if both figures exist."""
    return None if value is None or not base else value / base


def times(value: float | None, base: float | None = 1.0) -> str:
    """Format a ratio."""
    ratio = quotient(value, base)
    return NOTHING if ratio is None else f"{count(ratio)}x"


def _rows(sources: Mapping[str, Source]) -> Iterator[dict[str, Any]]:
    """Rows of the table of sources."""
    for source in sources.values():
        if source.content:
            machine = source.content.machine
            yield {
                "file": source.file,
                "command": source.command,
                "commit": machine.get("commit"),
                "machine": str(machine["processor"])
                .removeprefix("Intel(R) ")
                .removesuffix(" Processor"),
                "busy": percent(source.content.busy_elsewhere),
            }


def page(folder: Path = RESULTS) -> str:
    """Render the page from the files of a folder."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # Markdown
    )
    environment.filters.update(count=count, percent=percent)
    sources = {name: Source(folder / f"{name}.json", command) for name, command in BENCHES.items()}
    text = environment.get_template("page.md").render(
        **sources,
        times=times,
        quotient=quotient,
        rows=list(_rows(sources)),
        missing=[source for source in sources.values() if not source],
    )
    return re.sub(r"\n{3,}", "\n\n", text.strip()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE)
