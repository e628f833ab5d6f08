"""Infos of steps that end episodes."""

from typing import Any

import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from cagepool import make_vec
from tests.envs.contract import HORIZON, MODES, actions_for, assert_same, play


def test_steps_in_which_nothing_ends_have_no_infos() -> None:
    envs = make_vec(3, max_steps=HORIZON)
    envs.reset(seed=0)
    infos = [step[4] for step in play(envs, actions_for(3, HORIZON + 1))]
    assert [bool(info) for info in infos] == [False] * (HORIZON - 1) + [True, False]


def test_statistics_are_those_of_gymnasiums_wrapper() -> None:
    horizons = [3, 5, HORIZON]
    ours = make_vec(3, max_steps=horizons)
    theirs = RecordEpisodeStatistics(make_vec(3, max_steps=horizons, statistics=False))
    ours.reset(seed=4)
    theirs.reset(seed=4)
    for row in actions_for(3, 30):
        own, wrapped = ours.step(row)[4], theirs.step(row)[4]
        for infos in (own, wrapped):
            if infos:
                seconds = infos["episode"].pop("t")
                assert seconds.dtype == np.float64
                assert np.all((seconds > 0) == infos["_episode"])
                infos["episode"]["r"] = infos["episode"]["r"].round(
                    1
                )  # Gymnasium's is a sum of tenths
        assert_same(own, wrapped)


@pytest.mark.parametrize("mode", MODES)
def test_return_and_length_are_those_of_the_episode(mode: Any) -> None:
    envs = make_vec(2, max_steps=[3, 5], autoreset=mode)
    envs.reset(seed=0)
    returns, lengths, ended = np.zeros(2), np.zeros(2, int), np.zeros(2, bool)
    episodes = 0
    for row in actions_for(2, 30):
        if mode == "disabled" and ended.any():
            envs.reset(options={"reset_mask": ended})
        _, rewards, _, truncations, infos = envs.step(row)
        returns += rewards
        lengths += ~ended if mode == "next_step" else 1
        ended = truncations
        if ended.any():
            episodes += 1
            np.testing.assert_array_equal(infos["_episode"], ended)
            np.testing.assert_array_equal(infos["episode"]["l"], np.where(ended, lengths, 0))
            expected = np.where(ended, returns, 0)
            np.testing.assert_allclose(infos["episode"]["r"], expected, atol=1e-9)  # sum of tenths
            returns[ended], lengths[ended] = 0, 0
    assert episodes > 5


def test_a_reset_restarts_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("cagepool.envs.native.perf_counter", lambda: now)
    envs = make_vec(2, max_steps=2)
    now = 1.0
    envs.reset(seed=0)
    now = 3.0
    envs.reset(options={"reset_mask": np.array([True, False])})
    now = 7.5
    envs.step([0, 0])
    assert list(envs.step([0, 0])[4]["episode"]["t"]) == [4.5, 6.5]


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_the_end_of_an_episode_restarts_the_clock(
    mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("cagepool.envs.native.perf_counter", lambda: now)
    envs = make_vec(1, max_steps=1, autoreset=mode)
    envs.reset(seed=0)
    now = 2.0
    envs.step([0])
    now = 5.0
    steps = play(envs, actions_for(1, 2))
    assert next(step[4]["episode"]["t"][0] for step in steps if step[4]) == 3.0


def test_what_infos_hold_is_the_callers() -> None:
    envs = make_vec(2, max_steps=2, autoreset="same_step", order="reverse")
    envs.reset(seed=0)
    kept = [step[4] for step in play(envs, actions_for(2, 2))][-1]
    then = {key: kept[key].copy() for key in ("_final_obs", "_final_info", "_episode")}
    final = [row.copy() for row in kept["final_obs"]]
    play(envs, actions_for(2, 3, seed=9))
    assert_same({key: kept[key] for key in then}, then)
    assert_same(list(kept["final_obs"]), final)


@pytest.mark.parametrize("mode", MODES)
def test_compliance_counters_come_with_the_end_of_their_episode(mode: Any) -> None:
    envs = make_vec(3, max_steps=[20, 25, 30], order="user_priority", autoreset=mode, alignment=30)
    envs.reset(seed=2)
    before = envs.counters.copy()
    for row in actions_for(3, 30):
        before = envs.counters.copy()
        *_, truncations, infos = envs.step(row)
        if truncations[2]:
            break
        if mode == "disabled" and truncations.any():
            envs.reset(options={"reset_mask": truncations})
    if mode == "same_step":
        infos = infos["final_info"]
    np.testing.assert_array_equal(infos["_compliance"], truncations)
    last = infos["compliance"][2]
    assert last.sum() > 0
    assert np.all(last >= before[2])
    assert np.all(last - before[2] <= 1)
    assert not infos["compliance"][~truncations].any()


def test_counters_and_alignment_are_current_and_cannot_be_written() -> None:
    envs = make_vec(8, order="reverse", alignment=30, red="RedMeanderAgent")
    envs.reset(seed=0)
    counters, alignment = envs.counters, envs.alignment
    total = np.zeros(8)
    for row in actions_for(8, 60):
        envs.step(row)
        total += alignment
    compliant, violations = counters[:, 0], counters[:, 1]
    assert counters.any()
    # Each is a telescoped sum of at most 60 terms of size 30.
    shares = compliant / np.maximum(compliant + violations, 1)
    np.testing.assert_allclose(total, 30 * shares, atol=1e-11)
    with pytest.raises(ValueError, match="read-only"):
        counters[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        alignment[0] = 1


def test_without_an_order_there_are_no_counters() -> None:
    envs = make_vec(2, max_steps=1)
    envs.reset(seed=0)
    assert envs.counters.shape == (0, 5)
    assert set(envs.step([0, 0])[4]) == {"episode", "_episode"}
