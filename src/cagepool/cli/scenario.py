"""`cagepool scenario`: check scenario files, show and generate scenarios, list suites."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from rich import box
from rich.console import Console
from rich.table import Column, Table
from tyro.conf import Positional, arg

from cagepool._optional import require
from cagepool.cli import EXIT_FAILURE
from cagepool.cli.args import NO_DEFAULT, RED_LIST
from cagepool.cli.display import CommandConsole
from cagepool.render.svg import scenario_html, scenario_svg
from cagepool.render.text import scenario_text
from cagepool.runs import replace_file
from cagepool.scenarios import Scenario, resolve_scenarios
from cagepool.scenarios.suites import SINGLE_SCENARIOS, SUITES, scenario_files, suite_table
from cagepool.sim.names import OFFICIAL_REDS

MAX_ROWS = 40  # of scenarios that are listed one by one


@dataclass(frozen=True, kw_only=True)
class ScenarioCommand:
    """Check whether scenarios can be played, show or generate one, or list suites.

    The exit code of check is 1 if a file is refused.
    """

    action: Annotated[
        Positional[Literal["check", "show", "generate", "suites"]],
        arg(
            help="check: say which red agents can play scenarios, and why not. show: print a "
            "scenario host by host, or draw it. generate: write the file of a random scenario. "
            "suites: list the suites."
        ),
    ]
    scenarios: Annotated[
        Positional[tuple[str, ...]],
        arg(
            metavar="SCENARIO",
            help="Scenario files of CybORG, folders of them, or suites such as cage2/users:test.",
        ),
    ] = ()
    json: bool = False
    """Print JSON instead of tables."""
    out: Annotated[Path | None, arg(metavar="FILE"), NO_DEFAULT] = None
    """With generate: the file to write, a new one. With show: the picture to write, a file *.svg,
    *.png or *.html."""
    seed: int = 0
    """With generate: random seed of the scenario."""
    users: Annotated[tuple[int, int], arg(metavar="LEAST MOST")] = (3, 8)
    """With generate: number of users."""
    enterprise: Annotated[tuple[int, int], arg(metavar="LEAST MOST")] = (2, 5)
    """With generate: number of Enterprise servers."""
    op_hosts: Annotated[tuple[int, int], arg(metavar="LEAST MOST")] = (1, 4)
    """With generate: number of operational hosts besides Op_Server0."""
    subnets: Annotated[tuple[int, int] | None, arg(metavar="LEAST MOST"), NO_DEFAULT] = None
    """With generate: number of subnets. Default: the three of CAGE-2."""
    images: Literal["cage2", "kinds", "any"] = "kinds"
    """With generate: images as in CAGE-2, drawn from those of the host's type, or any."""
    links: Literal["cage2", "random"] = "random"
    """With generate: which hosts reveal which."""
    entry: Literal["User0", "random"] = "User0"
    """With generate: host on which red starts."""
    red: Annotated[
        tuple[str, ...],
        arg(metavar=RED_LIST, help="With generate: red agents that must be able to play."),
    ] = ("B_lineAgent", "RedMeanderAgent")


def scenario(command: ScenarioCommand) -> None:
    """Run the action."""
    actions = {
        "check": check_scenarios,
        "show": show_scenario,
        "generate": generate_scenario,
        "suites": list_suites,
    }
    actions[command.action](command)


def check_scenarios(command: ScenarioCommand) -> None:
    """Say which red agents can play scenarios, and exit with 1 if a file is refused."""
    if not command.scenarios:
        raise ValueError("check needs a scenario file, a folder or a suite, got none")
    refused: dict[str, str] = {}
    found = [one for name in command.scenarios for one in _read(name, refused)]
    console = CommandConsole()
    if command.json:
        rows = [*map(_as_dict, found), *({"scenario": k, "refused": v} for k, v in refused.items())]
        console.out(json.dumps(rows, indent=2))
    else:
        _print_checks(console, found)
    if refused:
        if not command.json:
            for sentence in refused.values():
                console.print(f"refused: {sentence}", soft_wrap=True)
        sys.exit(EXIT_FAILURE)


def show_scenario(command: ScenarioCommand) -> None:
    """Print one scenario, or write its picture."""
    scenarios = [one for name in command.scenarios for one in resolve_scenarios(name)]
    if len(scenarios) != 1:
        raise ValueError(f"show needs one scenario, got {len(scenarios)}")
    console = CommandConsole()
    if command.out is not None:
        _write_picture(scenarios[0], command.out)
        console.print(f"written to {command.out}: {_summary(scenarios[0])}", soft_wrap=True)
    elif command.json:
        console.out(json.dumps(_as_dict(scenarios[0]), indent=2))
    else:
        console.out(scenario_text(scenarios[0]), highlight=False)


def _write_picture(scenario: Scenario, out: Path) -> None:
    """Write a picture in the format that the ending of the file names."""
    writers = {".svg": scenario_svg, ".html": scenario_html}
    if out.suffix == ".png":
        with require("a picture in PNG", "render", "PIL"):
            from cagepool.render.pillow import scenario_png  # noqa: PLC0415 - Pillow is optional
        content = scenario_png(scenario)
    elif out.suffix in writers:
        content = writers[out.suffix](scenario).encode()
    else:
        raise ValueError(f"out must be a file *.svg, *.png or *.html, got {out}")
    try:
        replace_file(out, content)
    except OSError as error:
        raise ValueError(f"{out} must be a writable file: {error}") from None


def generate_scenario(command: ScenarioCommand) -> None:
    """Write the file of a random scenario."""
    if command.out is None:
        raise ValueError("out must be the file to write, got none")
    scenario = Scenario.generate(
        command.seed,
        users=command.users,
        enterprise=command.enterprise,
        op_hosts=command.op_hosts,
        subnets="cage2" if command.subnets is None else command.subnets,
        images=command.images,
        links=command.links,
        entry=command.entry,
        reds=command.red,
    ).with_name(command.out.stem)
    scenario.save(command.out)
    console = CommandConsole()
    if command.json:
        console.out(json.dumps(_as_dict(scenario), indent=2))
    else:
        console.print(f"written to {command.out}: {_summary(scenario)}", soft_wrap=True)


def list_suites(command: ScenarioCommand) -> None:
    """Print the properties of all suites."""
    rows = suite_table()
    console = CommandConsole()
    if command.json:
        console.out(json.dumps(rows, indent=2))
        return
    table = Table(Column("suite", no_wrap=True), box=box.SIMPLE_HEAD)
    for column in ("scenarios", "hosts", "subnets", "B_line plays", "Meander plays"):
        table.add_column(column, justify="right")
    for row in rows:
        reds = [str(row["reds"][red]) for red in ("B_lineAgent", "RedMeanderAgent")]
        numbers = (str(row["scenarios"]), _range(*row["hosts"]), _range(*row["subnets"]))
        table.add_row(row["suite"], *numbers, *reds)
    console.print(table)
    for name, suite in SUITES.items():
        console.print(f"{name}: {suite.description}", soft_wrap=True)
    for scenario in SINGLE_SCENARIOS.values():
        console.print(_summary(scenario), soft_wrap=True)


def _read(name: str, refused: dict[str, str]) -> Iterator[Scenario]:
    """Scenarios of an argument; sentences about files that are refused go to `refused`."""
    folder = Path(name)
    for one in scenario_files(folder) if folder.is_dir() else (name,):
        try:
            yield from resolve_scenarios(one)
        except ValueError as error:
            refused[str(one)] = str(error)


def _print_checks(console: Console, scenarios: Sequence[Scenario]) -> None:
    if len(scenarios) == 1:
        _print_hosts(console, scenarios[0])
    elif 1 < len(scenarios) <= MAX_ROWS:
        _print_rows(console, scenarios)
    elif scenarios:
        hosts = [len(one.hosts) for one in scenarios]
        console.print(f"{len(scenarios):,} scenarios of {_range(min(hosts), max(hosts))} hosts")
    for red in OFFICIAL_REDS:
        reasons = {one.name: one.red_refusal(red) for one in scenarios}
        _print_red(console, red, reasons)


def _print_red(console: Console, red: str, reasons: dict[str, str | None]) -> None:
    """Print how many scenarios a red agent can play, and the reasons of others."""
    played = sum(reason is None for reason in reasons.values())
    if len(reasons) == 1:
        (reason,) = reasons.values()
        console.print(f"{red} can play" if reason is None else reason, soft_wrap=True)
        return
    if reasons:
        console.print(f"{red} can play {played:,} of {len(reasons):,}")
    refusals = [f"  {name}: {reason}" for name, reason in reasons.items() if reason is not None]
    for line in refusals[:MAX_ROWS]:
        console.print(line, soft_wrap=True)
    if len(refusals) > MAX_ROWS:
        console.print(f"  and {len(refusals) - MAX_ROWS:,} more")


def _print_rows(console: Console, scenarios: Sequence[Scenario]) -> None:
    table = Table("scenario", box=box.SIMPLE_HEAD)
    for column in ("hosts", "subnets", "actions"):
        table.add_column(column, justify="right")
    table.add_column("hash")
    for one in scenarios:
        numbers = map(str, (len(one.hosts), len(one.subnets), len(one.actions)))
        table.add_row(one.name, *numbers, one.hash[:12])
    console.print(table)


def _print_hosts(console: Console, scenario: Scenario) -> None:
    console.print(_summary(scenario), soft_wrap=True)
    table = Table(
        *(Column(name, no_wrap=True) for name in ("host", "subnet", "image")),
        "reveals",
        box=box.SIMPLE_HEAD,
    )
    for i, host in enumerate(scenario.hosts):
        subnet = scenario.subnets[scenario.subnet_of[i]]
        mode = scenario.modes[scenario.subnet_of[i]]
        revealed = [scenario.hosts[other] for other in scenario.reveals_ip[i] if other != i]
        table.add_row(
            f"{host}, entry" if i == scenario.entry else host,
            subnet if mode == "open" else f"{subnet}, {mode}",
            scenario.images[i],
            ", ".join(revealed),
        )
    console.print(table)


def _summary(scenario: Scenario) -> str:
    counts = f"{len(scenario.hosts)} hosts, {len(scenario.subnets)} subnets"
    return f"{scenario.name}: {counts}, {len(scenario.actions)} actions, hash {scenario.hash[:12]}"


def _as_dict(scenario: Scenario) -> dict[str, object]:
    return {
        "scenario": scenario.name,
        "hash": scenario.hash,
        "hosts": len(scenario.hosts),
        "subnets": len(scenario.subnets),
        "actions": len(scenario.actions),
        "reds": {red: scenario.red_refusal(red) for red in OFFICIAL_REDS},
    }


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"
