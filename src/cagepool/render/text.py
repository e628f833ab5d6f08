"""Games and scenarios as text for a terminal."""

from collections.abc import Iterator, Sequence

from cagepool.render.game import decoy_list, game_scenario, last_moves, observed_hosts, ot_flags
from cagepool.render.plan import scenario_plan
from cagepool.scenarios import CAGE2, Scenario
from cagepool.sim.batch import Batch
from cagepool.sim.names import EDITIONS, OFFICIAL_REDS, RED_AGENTS

_NONE = "."
_ACTIVITY = (_NONE, "Scan", "Exploit")
_COMPROMISED = (_NONE, "Unknown", "User", "Privileged")
_ACCESS = (_NONE, "user", "privileged")
_SUCCESS_WORDS = {None: "UNKNOWN", False: "FALSE", True: "TRUE"}
_BAR = "|"
_COLUMNS = (
    *("host", "subnet", _BAR, "activity", "compromised", _BAR),
    *("access", "priv", "seen", "unseen", "malware", "decoys"),
)
_SCENARIO_COLUMNS = ("host", "image", "system", "ports", "value", "reveals", "notes")
VALUES = {0: "None", 1: "Low", 10: "Medium", 100: "High"}  # by tenths of the reward


def render_text(batch: Batch, game: int) -> str:
    """Render the last step, a table of the hosts, and OTService.

    `priv`, `seen` and `unseen` count red's sessions: privileged ones, and user-level ones that blue
    has seen and can remove, or has not seen.
    """
    hosts = range(len(game_scenario(batch, game).hosts))
    rows = [_host_row(batch, game, host) for host in hosts]
    lines = [*_last_step(batch, game), "", *_table(rows), "", *_ot_service(batch, game)]
    return "\n".join(lines) + "\n"


def _last_step(batch: Batch, game: int) -> Iterator[str]:
    state = batch.true_state[game]
    step = batch.core.steps(game)
    red, edition = list(RED_AGENTS)[state["red"]], list(EDITIONS)[state["edition"]]
    scenario = game_scenario(batch, game)
    name = "" if scenario == CAGE2 else f", scenario {scenario.name}"
    yield f"step {step}, red {red}, edition {edition}{name}"
    if step == 0:  # the moves are those of the last episode
        return
    moves = last_moves(batch, game)
    yield f"blue    {moves['blue']}: {_SUCCESS_WORDS[moves['blue_success']]}"
    if moves["green"]:
        yield f"green   PortScan {moves['green']}"
    exploit = f" by {moves['exploit']}" if moves["exploit"] else ""
    yield f"red     {moves['red']}{exploit}: {_SUCCESS_WORDS[moves['red_success']]}"
    yield f"reward  {moves['reward']:.1f}"


def _host_row(batch: Batch, game: int, host: int) -> list[str]:
    state, scenario = batch.true_state[game], game_scenario(batch, game)
    activity = int(observed_hosts(batch, game)[host, :2].sum())
    sessions = (state[kind][host] for kind in ("privileged", "user_seen", "user_unseen"))
    return [
        scenario.hosts[host],
        scenario.subnets[scenario.subnet_of[host]],
        _BAR,
        _ACTIVITY[activity],
        _COMPROMISED[state["compromised"][host]],
        _BAR,
        _ACCESS[state["access"][host]],
        *(str(count) if count else _NONE for count in sessions),
        "file" if state["malware"][host] else _NONE,
        decoy_list(int(state["decoys"][host]), scenario) or _NONE,
    ]


def _ot_service(batch: Batch, game: int) -> Iterator[str]:
    flags = ot_flags(batch, game)
    known = "knows" if batch.true_state[game]["ot_service_known"] else "does not know"
    for host, (is_running, can_be_stopped) in flags.items():
        place = f" on {host}" if len(flags) > 1 else ""
        state = "runs" if is_running else "is stopped"
        immune = "" if can_be_stopped else f"; Impact cannot stop it since {host} was restored"
        yield f"OTService{place} {state}; red {known} of it{immune}"
    if not flags:
        yield "OTService runs on no host"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    lines = [_COLUMNS, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    heading, *body = (
        [cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines
    )
    columns = "  ".join(heading)
    blue, truth = columns.index(_BAR), columns.rindex(_BAR)
    yield f"{'':{blue}}{_BAR}  {'what blue sees':{truth - blue - 3}}{_BAR}  what is true"
    yield columns.rstrip()
    for line in body:
        yield "  ".join(line).rstrip()


def scenario_text(scenario: Scenario) -> str:
    """A scenario in lines: its settings, then subnets with their hosts in member order."""
    lines = [*_headings(scenario), ""]
    rows: list[tuple[Sequence[str], str]] = [(_SCENARIO_COLUMNS, "")]
    for name in scenario_plan(scenario).zones:
        subnet = scenario.subnets.index(name)
        rows.append(((), f"{name}, {_mode_words(scenario, scenario.modes[subnet])}"))
        rows += [(_scenario_row(scenario, host), "") for host in scenario.members[subnet]]
    widths = [
        max(len(cells[column]) for cells, _ in rows if cells)
        for column in range(len(_SCENARIO_COLUMNS))
    ]
    for cells, heading in rows:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=False))
        lines.append(heading or ("  " + "  ".join(padded)).rstrip())
    return "\n".join(lines) + "\n"


def _headings(scenario: Scenario) -> Iterator[str]:
    hosts, subnets = len(scenario.hosts), len(scenario.subnets)
    yield f"{scenario.name}: {hosts} hosts, {subnets} subnets, {len(scenario.actions)} actions"
    yield f"hash             {scenario.hash}"
    yield f"red enters at    {scenario.hosts[scenario.entry]}"
    yield f"order of play    {', '.join(scenario.order_of_play)}"
    yield f"blue's actions   {', '.join(scenario.action_kinds)}"
    scanned = [scenario.hosts[host] for host in scenario.green_hosts if host is not None]
    yield f"green scans      {', '.join(scanned) or 'nothing'}"
    for red in OFFICIAL_REDS:
        reason = scenario.red_refusal(red)
        yield f"{red:17}" + ("can play" if reason is None else f"cannot play: {reason}")


def _mode_words(scenario: Scenario, mode: str) -> str:
    if mode == "open":
        return "open to red"
    if mode == "closed":
        return "closed to red for good"
    keys = [scenario.hosts[host] for host in scenario.gate]
    if not keys:
        return "gated, and no host is a key"
    return f"gated: open while red has a session on one of {', '.join(keys)}"


def _scenario_row(scenario: Scenario, host: int) -> Sequence[str]:
    revealed = [scenario.hosts[other] for other in scenario.reveals_ip[host] if other != host]
    return (
        scenario.hosts[host],
        scenario.images[host],
        system_name(scenario, host),
        ", ".join(map(str, scenario.ports[host])) or "none",
        VALUES[scenario.confidentiality_tenths[host]],
        ", ".join(revealed) or "-",
        ", ".join(host_notes(scenario, host)),
    )


def system_name(scenario: Scenario, host: int) -> str:
    """Operating system of a host."""
    return "Windows" if scenario.windows[host] else "Linux"


def host_notes(scenario: Scenario, host: int) -> Iterator[str]:
    """Properties in which a host differs from most."""
    if host == scenario.entry:
        yield "red's entry"
    if scenario.ot[host]:
        yield f"OTService {VALUES[scenario.availability_tenths[host]]}"
    if host in scenario.gate:
        yield "gate key"
    if not scenario.agents[host]:
        yield "no blue agent"
    if not scenario.monitored[host]:
        yield "not monitored"
