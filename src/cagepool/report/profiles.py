"""Profiles as Markdown, for a page that says nothing but what was measured."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

Profiles = Mapping[str, Mapping[str, Any]]

_PART = re.compile(r"(<!-- profiles: ([\w, -]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, profiles: Profiles) -> str:
    """The page with tables of the profiles that its marks name, in place of what was there.

    Raises:
        KeyError: a mark names a profile that is not there.
    """

    def part(found: "re.Match[str]") -> str:
        named = {name: profiles[name] for name in found[2].split(", ")}
        return f"{found[1]}{tables(named)}{found[3]}"

    return _PART.sub(part, page)


def tables(profiles: Profiles) -> str:
    """A table of stages, one of everything else, and where they were made."""
    made = {name.removeprefix("profile_"): profile for name, profile in profiles.items()}
    facts = {
        "seconds, wall time": lambda one: f"{one['wall_seconds']:.2f}",
        "steps of all environments": lambda one: f"{one['steps']:,}",
        "environments": lambda one: f"{one['traffic']['environments']:,}",
        "messages a step": lambda one: f"{one['traffic']['messages']:,.1f}",
        "bytes of messages a step": lambda one: f"{one['traffic']['message_bytes']:,.0f}",
        "bytes in arrays a step": lambda one: f"{one['traffic']['array_bytes']:,.0f}",
        "slices looked into": lambda one: "{looked_into} of {slices}".format(**one["overhead"]),
        "microseconds a watched call": lambda one: _call(one["overhead"]),
        "overhead by count": lambda one: _percent(one["overhead"]["counted"]),
        "overhead by turns": lambda one: _percent(one["overhead"]["by_turns"]),
        "machine busy with others": lambda one: _percent(one.get("busy_elsewhere"), 0),
        "commit": lambda one: f"`{one['machine']['commit']}`",
    }
    rest = [[name, *map(show, made.values())] for name, show in facts.items()]
    titles = [*made]
    first = _table(["microseconds a step (share)", *titles], _stage_rows(list(made.values())))
    return f"{first}\n{_table(['', *titles], rest)}"


def _call(overhead: Mapping[str, Any]) -> str:
    seconds = overhead.get("seconds_per_watched_call")  # files of before have none
    return "unknown" if seconds is None else f"{1e6 * seconds:.2f}"


def _stage_rows(made: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    stages = dict.fromkeys(stage for one in made for stage in one["stages"])
    ordered = sorted(stages, key=lambda stage: max(list(one["stages"]).index(stage)
                     if stage in one["stages"] else -1 for one in made))  # fmt: skip
    rows = [[stage, *(_amount(one, one["stages"].get(stage)) for one in made)] for stage in ordered]
    return [*rows, ["**wall time**", *(_amount(one, one["wall_seconds"]) for one in made)]]


def _amount(profile: Mapping[str, Any], seconds: float | None) -> str:
    if seconds is None:
        return ""
    share = seconds / profile["wall_seconds"]
    return f"{1e6 * seconds / profile['steps']:,.2f} ({_percent(share, 1)})"


def _percent(share: float | None, digits: int = 2) -> str:
    return "unknown" if share is None else f"{100 * share:.{digits}f} %"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---", *("---:" for _ in titles[1:])], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
