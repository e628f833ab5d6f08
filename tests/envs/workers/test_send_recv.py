"""`send` and `recv` give the trajectories of `step`, without its barrier."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cagepool import make_vec
from cagepool.envs import Ready
from tests.envs.contract import HORIZON, MODES, actions_for, assert_same
from tests.envs.workers.toy_envs import SIZE, Checksummed, Gated, Sampler

ENVS = 5
STEPS = 20
# `min_ready`, and positions of the environments to send, modulo the number received.
SCHEDULES = st.lists(
    st.tuples(st.integers(1, ENVS), st.lists(st.integers(0, ENVS - 1), min_size=1, max_size=ENVS)),
    min_size=1,
    max_size=30,
)


def of_env(ready: Ready, row: int) -> dict[str, Any]:
    """The result of one environment."""
    infos = {
        key: value[row]
        for key, value in ready.infos.items()
        if not key.startswith("_") and ready.infos[f"_{key}"][row] and not isinstance(value, dict)
    }
    return {
        "observation": ready.observations[row],
        "reward": ready.rewards[row],
        "ends": (ready.terminations[row], ready.truncations[row]),
        "infos": infos,
    }


class Player:
    """Plays a fixed list of actions in each environment, in the order in which they get ready."""

    def __init__(self, envs: Any, actions: Any) -> None:
        self.envs = envs
        self.actions = actions
        self.seen: list[list[dict[str, Any]]] = [[] for _ in range(envs.num_envs)]
        self.at_hand = list(range(envs.num_envs))
        self.away = 0

    def send(self, ids: list[int]) -> None:
        ids = [index for index in ids if len(self.seen[index]) < len(self.actions)]
        if ids:
            rows = [self.actions[len(self.seen[index]), index] for index in ids]
            self.envs.send(rows, ids)
            self.at_hand = [index for index in self.at_hand if index not in ids]
            self.away += len(ids)

    def recv(self, min_ready: int) -> None:
        ready = self.envs.recv(min_ready=min(min_ready, self.away))
        self.away -= len(ready.ids)
        assert len(ready.ids) >= min(min_ready, self.away)
        for row, index in enumerate(ready.ids.tolist()):
            self.seen[index].append(of_env(ready, row))
            self.at_hand.append(index)

    def play(self, schedule: list[tuple[int, list[int]]]) -> list[list[dict[str, Any]]]:
        for min_ready, places in schedule:
            if self.at_hand:
                self.send(list(dict.fromkeys(self.at_hand[p % len(self.at_hand)] for p in places)))
            if self.away:
                self.recv(min_ready)
        while min(map(len, self.seen)) < len(self.actions):
            self.send(list(self.at_hand))
            self.recv(1)
        return self.seen


def reference(mode: Any, actions: Any) -> list[list[dict[str, Any]]]:
    envs = make_vec(ENVS, backend="sync", autoreset=mode, max_steps=HORIZON, red="mix")
    envs.reset(seed=1)
    seen: list[list[dict[str, Any]]] = [[] for _ in range(ENVS)]
    for row in actions:
        ready = Ready(np.arange(ENVS), *envs.step(row))
        for index in range(ENVS):
            seen[index].append(of_env(ready, index))
    return seen


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize("backend", ["native", "workers"])
def test_any_schedule_gives_the_trajectories_of_single_environments(
    backend: Any, mode: Any
) -> None:
    extra = {"statistics": False} if backend == "native" else {"workers": 2}
    actions = actions_for(ENVS, STEPS)
    expected = reference(mode, actions)
    envs: Any = make_vec(
        ENVS, backend=backend, autoreset=mode, max_steps=HORIZON, red="mix", **extra
    )

    @settings(max_examples=25)
    @given(schedule=SCHEDULES)
    def check(schedule: list[tuple[int, list[int]]]) -> None:
        envs.reset(seed=1)
        assert_same(Player(envs, actions).play(schedule), expected)

    check()
    envs.close()


@pytest.mark.parametrize("backend", ["native", "workers"])
@pytest.mark.parametrize("mode", MODES)
def test_sending_all_and_receiving_all_is_a_step(backend: Any, mode: Any) -> None:
    extra: Any = {"statistics": False} if backend == "native" else {"workers": 1}
    make: Any = partial(make_vec, 4, backend=backend, autoreset=mode, max_steps=HORIZON, **extra)
    free, barrier = make(), make()
    for envs in (free, barrier):
        envs.reset(seed=5)
    for row in actions_for(4, HORIZON):
        free.send(row)
        ready = free.recv(4)
        order = np.argsort(ready.ids)
        observations, rewards, *ends, infos = barrier.step(row)
        assert_same(ready.observations[order], observations)
        assert_same(ready.rewards[order], rewards)
        assert_same([ready.terminations[order], ready.truncations[order]], ends)
        assert ready.infos.keys() == infos.keys()
    free.close()
    barrier.close()


@pytest.fixture(params=["native", "workers"], scope="module")
def shared_envs(request: pytest.FixtureRequest) -> Any:
    envs: Any = make_vec(3, backend=request.param)
    yield envs
    envs.close()


@pytest.fixture
def envs(shared_envs: Any) -> Any:
    shared_envs.reset(seed=0)  # drops the steps that an earlier test left pending
    return shared_envs


@pytest.mark.parametrize(
    ("ids", "error", "sentence"),
    [
        ([0, 3], IndexError, "ids must be from 0 to 2, got 0 to 3"),
        ([-1, 0], IndexError, "ids must be from 0 to 2, got -1 to 0"),
        ([2, 2], ValueError, "ids must name each environment once"),
        ([], ValueError, "ids must name at least one environment"),
        ([0.5, 1], TypeError, "ids must be integers"),
        ([2, 1], ValueError, "environment 1 was sent before; it must be received first"),
    ],
)
def test_what_cannot_be_sent_is_refused(
    envs: Any, ids: Any, error: type[Exception], sentence: str
) -> None:
    envs.send([0], [1])
    with pytest.raises(error, match=sentence):
        envs.send([0] * len(ids), ids)
    assert envs.recv().ids.tolist() == [1]


def test_what_cannot_come_is_not_waited_for(envs: Any) -> None:
    with pytest.raises(ValueError, match=r"min_ready must be from 1 to .* 0; got 1"):
        envs.recv()
    envs.send([0, 0], [0, 2])
    with pytest.raises(ValueError, match=r"min_ready must be from 1 to .* 2; got 3"):
        envs.recv(min_ready=3)
    with pytest.raises(ValueError, match=r"min_ready must be from 1 to .* 2; got 0"):
        envs.recv(min_ready=0)


def test_a_step_with_environments_on_their_way_is_refused(envs: Any) -> None:
    envs.send([0], [1])
    with pytest.raises(ValueError, match="must be received before anything else"):
        envs.step([0, 0, 0])


def test_a_reset_forgets_what_is_on_its_way(envs: Any) -> None:
    first, _ = envs.reset(seed=4)
    envs.send([0, 1, 2])
    again, _ = envs.reset(seed=4)
    assert_same(first, again)
    with pytest.raises(ValueError, match="min_ready"):
        envs.recv()
    envs.step([0, 0, 0])


def test_environments_that_wait_are_served_while_others_run(envs: Any) -> None:
    envs.send([0, 0, 0])
    turns = np.zeros(3, int)
    while turns.min() < 50:
        ready = envs.recv()
        turns[ready.ids] += 1
        envs.send(np.zeros(len(ready.ids), int), ready.ids)
    assert turns.max() < 5000


def test_results_can_be_awaited(envs: Any) -> None:
    async def play() -> list[int]:
        envs.send([0, 1, 2])
        ids: list[int] = []
        while len(ids) < 3:
            ids += (await envs.arecv()).ids.tolist()
        return ids

    assert sorted(asyncio.run(play())) == [0, 1, 2]


def test_others_run_while_results_are_awaited(tmp_path: Path) -> None:
    gate = tmp_path / "open"

    async def play() -> int:
        with make_vec(2, env=partial(Gated, gate), backend="workers", workers=1) as envs:
            envs.reset(seed=0)
            envs.send([1, 2])
            results = asyncio.create_task(envs.arecv(2))
            await asyncio.sleep(0)
            gate.touch()  # reached only because `arecv` does not block
            return len((await results).ids)

    assert asyncio.run(play()) == 2


@pytest.mark.parametrize(
    "batches",
    [50, pytest.param(500, marks=pytest.mark.soak)],
    ids=["a hundred thousand", "a million"],
)
def test_no_observation_is_torn_in_many_steps(batches: int) -> None:
    count = 1000
    with make_vec(count, env=Checksummed, backend="workers", workers=2) as envs:
        envs.reset(seed=0)
        steps = np.zeros(count, np.int64)
        for step in range(batches):
            observations, rewards, *_ = envs.step(np.arange(count) + step)
            assert not observations.sum(1).any()
            assert (observations[:, 0] == step + 1).all()
            assert (observations[:, 1] == np.arange(count) + step).all()
            assert (rewards == step + 1).all()
        steps[:] = batches
        envs.send(np.zeros(count, int))
        done = 0
        while done < count * batches:
            ready = envs.recv(count // 4)
            steps[ready.ids] += 1
            done += len(ready.ids)
            assert not ready.observations.sum(1).any()
            assert (ready.observations[:, 0] == steps[ready.ids]).all()
            assert (ready.observations[:, 2] == ready.ids).all()
            assert (ready.rewards == steps[ready.ids]).all()
            envs.send(ready.ids, ready.ids)
    assert SIZE > 8  # an observation is more than one cache line


def test_infos_come_with_their_environment_and_step() -> None:
    with make_vec(6, env=partial(Sampler, horizon=100), backend="workers", workers=2) as envs:
        envs.reset(seed=0)
        steps = np.zeros(6, int)
        envs.send(np.zeros(6, int))
        for _ in range(100):
            ready = envs.recv()
            steps[ready.ids] += 1
            odd = steps[ready.ids] % 2 == 1
            if odd.any():
                assert ready.infos["_steps"].tolist() == odd.tolist()
                assert (ready.infos["steps"][odd] == steps[ready.ids][odd]).all()
                assert (ready.infos["word"][odd] == "odd").all()
            else:
                assert ready.infos == {}
            going = ready.ids[steps[ready.ids] < 90]
            if len(going):
                envs.send(np.zeros(len(going), int), going)
            if not envs._pool.pending.any():
                break
