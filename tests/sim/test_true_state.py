"""Views of the true state."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cagepool import _core
from cagepool.sim import TrueState, dtypes
from cagepool.sim.names import RED_AGENTS
from tests.sim.games import SEEDS, play_step, start_batch, trace_rows

BY_HOST = {
    "access": np.uint8,
    "privileged": np.uint8,
    "user_seen": np.uint8,
    "user_unseen": np.uint8,
    "decoys": np.uint16,
    "malware": np.uint8,
    "compromised": np.uint8,
    "ot_running": np.uint8,
    "ot_pid_known": np.uint8,
    "mail_immune": np.uint8,
}
BY_GAME = {
    "ot_service_known": np.uint8,
    "red": np.uint8,
    "edition": np.uint8,
    "scenario": np.uint16,
}


def test_there_is_a_view_of_every_part_of_the_state() -> None:
    assert {*BY_HOST, *BY_GAME} == set(dtypes.TRUE_STATE.names or ())
    assert {*BY_HOST, *BY_GAME} == TrueState.__annotations__.keys()


@pytest.mark.parametrize("name", [*BY_HOST, *BY_GAME])
def test_a_view_is_read_only_and_never_copied(name: str) -> None:
    batch = start_batch(3)
    view = getattr(TrueState(batch), name)

    assert view.shape == ((3, 13) if name in BY_HOST else (3,))
    assert view.dtype == (BY_HOST | BY_GAME)[name]
    assert np.shares_memory(view, batch.true_state)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


def test_a_view_shows_what_happens() -> None:
    batch = start_batch(1, red="given", edition="leaderboard")
    state = TrueState(batch)
    assert state.access.tolist() == [[0] * 8 + [2] + [0] * 4]
    play_step(batch, "DecoyTomcat User1", "DiscoverRemoteSystems User")
    play_step(batch, "Restore User3", "DiscoverNetworkServices User3")
    assert (state.decoys[0, 9], state.mail_immune[0].nonzero()[0].tolist()) == (1 << 6, [11])
    assert (state.red[0], state.edition[0]) == (_core.Red.GIVEN, _core.Edition.LEADERBOARD)
    batch.reset()
    assert not state.decoys.any()


@given(seed=SEEDS, policy=st.integers(0, 100))
def test_the_views_agree_with_a_trace_of_the_same_game(seed: int, policy: int) -> None:
    batch = start_batch(4, seed, red=["b_line", "meander", "sleep", "meander"], green=True)
    state = TrueState(batch)
    rng = np.random.default_rng(policy)
    for _ in range(50):
        batch.step(rng.integers(0, 145, 4))
        row = trace_rows(batch)
        for view, field in [
            (state.privileged, "s_priv"),
            (state.user_seen, "s_user_seen"),
            (state.user_unseen, "s_user_unseen"),
            (state.decoys, "s_decoys"),
            (state.malware, "s_malware"),
            (state.ot_running, "s_ot_running"),
            (state.ot_pid_known, "s_ot_pid_known"),
        ]:
            np.testing.assert_array_equal(view, row[field])
        np.testing.assert_array_equal(state.ot_service_known, row["s_ot_known"])
        user_level = state.user_seen + state.user_unseen > 0
        access = np.where(state.privileged > 0, 2, np.where(user_level, 1, 0))
        np.testing.assert_array_equal(state.access, access)


@pytest.mark.parametrize("name", [name for name in RED_AGENTS if name != "given"])
def test_red_is_told_apart(name: str) -> None:
    assert TrueState(start_batch(1, red=name)).red.tolist() == [RED_AGENTS[name]]
