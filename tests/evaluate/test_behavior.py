"""Behavior of defenders, against a slow count over single games."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict

from cagepool.evaluate.behavior import BehaviorRecorder
from cagepool.evaluate.rollout import Trial, game_seeds, start_games
from cagepool.evaluate.statistics import play_and_count
from cagepool.policy.defenders import SCRIPTED, scripted_defender
from cagepool.runs.study_schema import BehaviorCounts
from cagepool.scenarios import CAGE2
from cagepool.sim.moves import MoveArrays
from cagepool.sim.names import DECOYS, HOSTS
from tests.scenarios.files import sample

TRIAL = Trial(episodes=30, max_steps=60, seed=2)
# Exploit that each decoy stands in for (docs/rules.md, 1.4 and 1.5).
FAKED = {
    "Apache": "HTTPRFI", "Femitter": "FTPDirectoryTraversal", "HarakaSMPT": "HarakaRCE",
    "Smss": "EternalBlue", "SSHD": "SSHBruteForce", "Svchost": "BlueKeep", "Tomcat": "HTTPSRFI",
    "Vsftpd": "HTTPRFI",
}  # fmt: skip


def count_slowly(name: str, red: str) -> Counter[str]:
    """Count host by host and step by step, in words."""
    counts: Counter[str] = Counter()
    defender = scripted_defender(name)
    batch = start_games(TRIAL, red, game_seeds(TRIAL, red))
    defender.begin(batch)
    intruded: list[dict[str, dict[str, Any]]] = [{} for _ in range(batch.games)]
    for step in range(1, TRIAL.max_steps + 1):
        before = batch.true_state.copy()
        batch.step(defender.act(batch.observations))
        moves = MoveArrays(batch.moves)
        for game in range(batch.games):
            blue, host = str(moves.blue[game]), moves.blue_host[game]
            counts["steps"] += 1
            _count_blue(counts, before[game], blue, host, int(moves.blue_success[game]))
            if host in intruded[game] and _ends_all(before[game], blue, host):
                _count_end(counts, intruded[game].pop(host), blue, step)
            state = batch.true_state[game]
            _count_red(counts, state, moves, game)
            for number, other in enumerate(HOSTS):
                if other == "User0":
                    continue
                counts["host_steps"] += 1
                if state["access"][number] == 0:
                    counts["clean_host_steps"] += 1
                    continue
                entry = intruded[game].setdefault(other, {"start": step, "root": 0, "seen": 0})
                entry["root"] |= state["privileged"][number] > 0
                entry["seen"] |= state["user_seen"][number] > 0
    for games in intruded:
        for entry in games.values():
            _count_end(counts, entry, "", TRIAL.max_steps)
    return counts


def _count_blue(counts: Counter[str], before: Any, blue: str, host: Any, success: int) -> None:
    if host is None:
        counts["idle_steps"] += 1
        return
    number = HOSTS.index(host)
    is_foothold = host == "User0"
    if blue == "Restore":
        useful = before["access"][number] > 0 and not is_foothold
        counts["restores"] += 1
        counts["useful_restores"] += useful
    elif blue == "Remove":
        useful = before["user_seen"][number] > 0 and not is_foothold
        counts["removes"] += 1
        counts["useful_removes"] += useful
    elif blue == "Analyse":
        useful = before["malware"][number] == 1
    else:
        useful = success == 1
        counts["decoys"] += 1
    counts["actions_without_effect"] += not useful


def _ends_all(before: Any, blue: str, host: str) -> bool:
    number = HOSTS.index(host)
    others = int(before["privileged"][number]) + int(before["user_unseen"][number])
    return blue == "Restore" or (blue == "Remove" and others == 0)


def _count_end(counts: Counter[str], entry: dict[str, Any], blue: str, step: int) -> None:
    counts["intrusions"] += 1
    counts["privileged_intrusions"] += bool(entry["root"])
    counts["removable_intrusions"] += bool(entry["seen"])
    if blue:
        counts["fixed_intrusions"] += 1
        counts["steps_to_fix"] += step - entry["start"]
    counts["restored_intrusions"] += blue == "Restore" and bool(entry["root"])
    counts["removed_intrusions"] += blue == "Remove" and bool(entry["seen"])


def _count_red(counts: Counter[str], state: Any, moves: MoveArrays, game: int) -> None:
    if moves.red[game] != "ExploitRemoteService":
        return
    counts["exploits"] += 1
    target = HOSTS.index(moves.red_target[game])
    placed = [decoy for bit, decoy in enumerate(DECOYS) if state["decoys"][target] >> bit & 1]
    exploit, failed = moves.exploit[game], moves.red_success[game] == 0
    is_reachable = not str(moves.red_target[game]).startswith("Op_") or any(
        state["access"][HOSTS.index(host)] for host in HOSTS if host.startswith("Enterprise")
    )
    counts["decoy_hits"] += (
        failed and is_reachable and exploit in {FAKED[decoy] for decoy in placed}
    )


@pytest.mark.parametrize("red", ["B_lineAgent", "RedMeanderAgent"])
@pytest.mark.parametrize("name", SCRIPTED)
def test_counts_are_those_of_a_slow_computation(name: str, red: str) -> None:
    recorder = BehaviorRecorder(scripted_defender(name))
    play_and_count(recorder, TRIAL, red)
    counted = recorder.counts()
    expected = count_slowly(name, red)
    names = [field for field in BehaviorCounts.__struct_fields__ if field != "games"]
    assert {field: getattr(counted, field) for field in names} == {
        field: expected[field] for field in names
    }
    assert counted.games == TRIAL.episodes


def test_a_recorder_plays_as_its_defender() -> None:
    plain, recorded = (
        play_and_count(defender, TRIAL, "B_lineAgent").totals
        for defender in (
            scripted_defender("react-restore"),
            BehaviorRecorder(scripted_defender("react-restore")),
        )
    )
    assert np.array_equal(plain, recorded)


def test_a_recorder_counts_the_games_of_several_batches() -> None:
    recorder = BehaviorRecorder(scripted_defender("random"))
    for _ in range(2):
        play_and_count(recorder, TRIAL, "B_lineAgent")
    twice = recorder.counts()
    single = BehaviorRecorder(scripted_defender("random"))
    play_and_count(single, TRIAL, "B_lineAgent")
    once = single.counts()
    for field in BehaviorCounts.__struct_fields__:
        assert getattr(twice, field) == 2 * getattr(once, field)


def test_behavior_is_counted_in_any_scenario() -> None:
    trial = replace(TRIAL, scenario=(sample("users_plus2"), CAGE2))
    recorder = BehaviorRecorder(scripted_defender("react-restore"))
    played = play_and_count(recorder, trial, "B_lineAgent")
    counts = recorder.counts()
    restores = played.mean_action_uses()
    row = restores.counts[restores.kinds.index("Restore")]
    assert counts.restores == pytest.approx(sum(row) * played.games)
    assert counts.games == played.games == 2 * TRIAL.episodes
    hosts = sum(len(scenario.hosts) - 1 for scenario in trial.scenarios)
    assert counts.host_steps == hosts * TRIAL.episodes * TRIAL.max_steps
    assert 0 < counts.useful_restores <= counts.restores
    assert 0 < counts.fixed_intrusions <= counts.intrusions


def test_counts_do_not_depend_on_the_other_scenarios() -> None:
    scenarios = (sample("tiny"), CAGE2)
    totals: Counter[str] = Counter()
    for scenario in (scenarios, *scenarios):
        recorder = BehaviorRecorder(scripted_defender("restore-rotation"))
        play_and_count(recorder, replace(TRIAL, scenario=scenario), "RedMeanderAgent")
        sign = 1 if scenario is scenarios else -1
        totals.update({name: sign * n for name, n in asdict(recorder.counts()).items()})
    assert not any(totals.values())
