"""Our games against CybORG's; run where it is installed or `CAGEPOOL_CYBORG` names a checkout."""

import random
from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

from cagepool.cyborg import CybORGEnv
from cagepool.cyborg.parity import ParityTrial, joined, mismatches, play, record
from cagepool.cyborg.parity.sight import Sight
from cagepool.cyborg.parity.twin import Twin
from cagepool.sim import dtypes
from cagepool.sim.names import ACTIONS, EDITIONS, action_index
from tests.cli.command import cagepool

pytestmark = pytest.mark.parity

REDS = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
STEPS = 25


@pytest.fixture(scope="module")
def env() -> CybORGEnv:
    return CybORGEnv(red="RedMeanderAgent", green=True, max_steps=STEPS)


def game(env: CybORGEnv, seed: int | None) -> list[NDArray[np.generic]]:
    """Observations, rewards and true states of an episode with a busy blue."""
    shown: list[NDArray[np.generic]] = [env.reset(seed=seed)[0]]
    draw = random.Random(1)
    for _ in range(env.max_steps):
        observation, reward, *_ = env.step(draw.randrange(len(ACTIONS)))
        shown += [observation, np.array(reward), env.true_state()]
    return shown


def same(one: list[NDArray[np.generic]], other: list[NDArray[np.generic]]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("red", REDS)
@pytest.mark.parametrize("green", [False, True], ids=["alone", "green"])
def test_no_field_differs(red: str, green: bool) -> None:
    result = play(ParityTrial(episodes=5, red=(red,), greens=(green,), max_steps=60))

    (tally,) = result.tallies.values()
    assert tally.faults == []
    assert tally.steps == 60 * tally.episodes
    assert tally.played == 5


def test_the_comparison_can_fail() -> None:
    env = CybORGEnv()
    trace = joined([record(env, "decoys", seed).trace for seed in range(5)])
    (other,) = {*EDITIONS} - {env.edition}
    wrong = np.full_like(trace["ep_edition"], list(EDITIONS).index(other))

    assert mismatches(trace) == []
    assert mismatches(trace | {"ep_edition": wrong}) != []


def test_the_twin_notices_another_edition(env: CybORGEnv) -> None:
    (other,) = {*EDITIONS} - {env.edition}
    twin = Twin(red=env.red, green=True, edition=other, max_steps=STEPS)

    found = list(twin.mismatches(record(env, "sleep", 3)))

    assert {fault.field for fault in found} == {"true_state edition"}


@pytest.mark.parametrize("suspects", [range(0), range(1, 32768)], ids=["none", "all"])
def test_a_process_that_gets_the_id_of_a_suspect_is_noticed(
    env: CybORGEnv, suspects: range
) -> None:
    env.reset(seed=0)
    blue = env.cyborg.environment_controller.state.sessions["Blue"][0]
    blue.sus_pids["Defender"] = list(suspects)
    sight = Sight(env)
    for action in ("Sleep", "DecoyApache Defender"):
        assert not sight.reused_pid
        sight.before()
        env.step(action_index(action))
        sight.after(env.true_state(), np.zeros(1, dtypes.TRACE_ROW)[0])

    assert sight.reused_pid == (len(suspects) > 0)


def test_the_environment_is_what_gymnasium_expects(env: CybORGEnv) -> None:
    check_env(env, skip_render_check=True)


def test_an_episode_is_truncated_at_the_horizon_and_never_terminated(env: CybORGEnv) -> None:
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(STEPS)]

    assert ends == [(False, False)] * (STEPS - 1) + [(False, True)]
    with pytest.raises(RuntimeError, match=r"^the game is over; reset it before the next step$"):
        env.step(0)


def test_the_first_step_needs_a_reset() -> None:
    with pytest.raises(RuntimeError, match=r"^reset must come before step$"):
        CybORGEnv().step(0)


@pytest.mark.parametrize("action", [-1, 145])
def test_an_action_out_of_range_is_refused(env: CybORGEnv, action: int) -> None:
    env.reset(seed=0)
    with pytest.raises(IndexError, match=f"^an action must be below 145, got {action}$"):
        env.step(action)


def test_an_edition_that_cyborg_does_not_play_is_refused(env: CybORGEnv) -> None:
    (other,) = {*EDITIONS} - {env.edition}
    with pytest.raises(ValueError, match=f"^edition must be that of the CybORG found, .*{other}"):
        CybORGEnv(edition=other)
    assert CybORGEnv(edition=env.edition).edition == env.edition


def test_a_seed_decides_the_game(env: CybORGEnv) -> None:
    first = game(env, 5)

    assert same(game(env, 5), first)
    assert same(game(CybORGEnv(red="meander", green=True, max_steps=STEPS), 5), first)
    assert not same(game(env, 6), first)
    assert not same(game(env, None), game(env, None))


def test_environments_of_one_process_do_not_share_luck(env: CybORGEnv) -> None:
    other = CybORGEnv(red="meander", green=True, max_steps=STEPS)
    alone = game(other, 9)

    shown: list[NDArray[np.generic]] = [other.reset(seed=9)[0]]
    env.reset(seed=1)
    draw = random.Random(1)
    for _ in range(STEPS):
        env.step(0)
        random.random()
        observation, reward, *_ = other.step(draw.randrange(len(ACTIONS)))
        shown += [observation, np.array(reward), other.true_state()]

    assert same(shown, alone)


def test_the_callers_own_luck_is_untouched(env: CybORGEnv) -> None:
    before = random.getstate()
    CybORGEnv(red="sleep")
    game(env, 2)
    assert random.getstate() == before


def test_a_seed_is_cyborgs_own(env: CybORGEnv) -> None:
    env.reset(seed=11)
    ours = dict(env.cyborg.get_ip_map())
    before = random.getstate()
    env.cyborg.set_seed(11)
    env.cyborg.reset(agent="Blue")
    random.setstate(before)

    assert env.cyborg.get_ip_map() == ours


def test_the_true_state_has_the_native_layout_and_is_the_callers_own(env: CybORGEnv) -> None:
    env.reset(seed=0)
    truth = env.true_state()
    copy = truth.copy()
    env.step(action_index("DecoyApache Defender"))

    assert (truth.shape, truth.dtype) == ((), dtypes.TRUE_STATE)
    assert truth == copy
    assert env.true_state()["decoys"][0] == 1
    assert env.true_state_dict()["Defender"]["System info"]["Hostname"] == "Defender"


def test_the_command_writes_a_trace_that_replays(tmp_path: Path) -> None:
    out = tmp_path / "few.npz"
    settings = ("--episodes", "2", "--max-steps", "20", "--red", "b_line", "--green", "off")
    done = cagepool("parity", *settings, "--out", str(out))

    assert done.returncode == 0, done.stderr
    assert ["B_lineAgent", "off", "2", "40", "0", "0"] in [
        line.split() for line in done.stdout.splitlines()
    ]
    with np.load(out) as file:
        assert file["obs"].shape == (2, 20, 52)
        assert mismatches(dict(file)) == []
