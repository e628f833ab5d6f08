"""Random kills and stops of workers lose nothing but the episodes that they end.

`make soak MINUTES=10` runs it for ten minutes; without CAGEPOOL_SOAK_MINUTES it is short. It prints
its seed; `make soak SEED=7` repeats the attacks of a seed, though not when they meet a worker.
"""

import os
import signal
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cagepool import make_vec
from cagepool.envs import WorkerVectorEnv
from tests.envs.workers.forks import FORKS, forked_child
from tests.envs.workers.process_resources import all_end, used_resources
from tests.envs.workers.toy_envs import Checksummed

pytestmark = pytest.mark.soak

SECONDS = 60 * float(os.environ.get("CAGEPOOL_SOAK_MINUTES", "0.25"))
SEED = int(os.environ.get("CAGEPOOL_SOAK_SEED", np.random.SeedSequence().generate_state(1)[0]))
COUNT = 12
WORKERS = 4
KILL_CHANCE = 0.05  # per exchange
ROUNDS = 200  # exchanges of one pool
ALLOWED_GROWTH = 32 << 20  # bytes of resident memory; a leak per restart exceeds it in minutes


@dataclass
class Trajectories:
    """What the next observation of each environment must be."""

    steps: NDArray[np.int64] = field(default_factory=lambda: np.zeros(COUNT, np.int64))
    # -1: the next step starts an episode

    def check(self, ids: NDArray[np.int64], actions: NDArray[np.int64], results: Any) -> int:
        """Compare results with what a deterministic environment gives; returns the restarts."""
        observations, rewards, terminations, truncations, infos = results
        nothing = np.zeros(len(ids), np.bool_)
        restarted = infos.get("_restarted", nothing)
        assert not terminations.any()
        assert (truncations == restarted).all()
        assert (rewards[restarted] == 0).all()
        begins = (self.steps[ids] == -1) & ~restarted
        plays = ~begins & ~restarted
        self.steps[ids] = np.where(restarted, -1, self.steps[ids] + 1)
        expected = self.steps[ids]
        whole = begins | plays
        assert (observations[whole, 0] == expected[whole]).all()
        assert not observations[whole].sum(1).any()  # the sum of a complete observation is 0
        assert (rewards[plays] == expected[plays]).all()
        assert (observations[plays, 1] == actions[ids][plays]).all()
        return int(np.count_nonzero(restarted))


class Attacker:
    """Kills, stops and continues workers at random."""

    def __init__(self, envs: WorkerVectorEnv, chance: np.random.Generator) -> None:
        self.envs = envs
        self.chance = chance
        self.attacks: Counter[str] = Counter()

    def attack(self) -> None:
        if self.chance.random() > KILL_CHANCE:
            return
        pid = int(self.chance.choice(self.envs.worker_pids))
        what = str(self.chance.choice(["SIGKILL", "SIGKILL", "SIGSTOP", "SIGSTOP then SIGCONT"]))
        with suppress(ProcessLookupError):
            for name in what.split(" then "):
                os.kill(pid, signal.Signals[name])
        self.attacks[what] += 1


def run_pool(pool: int) -> tuple[Counter[str], int, int]:
    """Play one pool with and without a barrier; returns attacks, restarts and steps."""
    # How often `recv` is called depends on time; attacks must not.
    chance, sizes = np.random.default_rng([SEED, pool]).spawn(2)
    restarts = steps = 0
    with (
        ExitStack() as children,
        make_vec(
            COUNT,
            env=Checksummed,
            backend="workers",
            workers=WORKERS,
            on_fault="restart",
            max_restarts=10**6,
            timeout=2.0,
        ) as envs,
    ):
        envs.reset(seed=0)
        if chance.random() < 0.5:
            children.enter_context(forked_child(str(chance.choice(list(FORKS)))))
        pids = set(envs.worker_pids)
        attacker, trajectories = Attacker(envs, chance), Trajectories()
        for _ in range(ROUNDS):
            actions = chance.integers(2**31 - 1, size=COUNT)
            attacker.attack()
            if chance.random() < 0.5:
                results = envs.step(actions)
                restarts += trajectories.check(np.arange(COUNT), actions, results)
            else:
                envs.send(actions)
                attacker.attack()
                received = 0
                while received < COUNT:
                    ready = envs.recv(int(sizes.integers(1, COUNT - received + 1)))
                    restarts += trajectories.check(ready.ids, actions, ready[1:])
                    received += len(ready.ids)
            steps += COUNT
            pids.update(envs.worker_pids)
        assert envs.restarts.sum() >= restarts
    assert all_end(sorted(pids))
    return attacker.attacks, restarts, steps


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_random_kills_lose_only_the_episodes_that_they_end(
    record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print(f"\nsoak of {SECONDS:g} s with seed {SEED}")  # noqa: T201
    run_pool(0)  # what is allocated once
    before, memory = used_resources(), resident_bytes()
    attacks: Counter[str] = Counter()
    restarts = steps = pools = 0
    deadline_s = monotonic() + SECONDS
    while monotonic() < deadline_s:
        pools += 1
        more_attacks, more_restarts, more_steps = run_pool(pools)
        attacks += more_attacks
        restarts, steps = restarts + more_restarts, steps + more_steps
        assert used_resources() == before
    assert restarts > 0
    assert resident_bytes() - memory < ALLOWED_GROWTH
    summary = {**attacks, "restarted environments": restarts, "steps": steps, "pools": pools}
    record_property("soak", summary)
    with capsys.disabled():
        print(f"soak of {SECONDS:g} s with seed {SEED}: {summary}")  # noqa: T201
