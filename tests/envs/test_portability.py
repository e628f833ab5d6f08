"""Platforms without Linux's system calls: native games run, workers raise one clear sentence."""

import subprocess
import sys

import pytest

OTHER_PLATFORM = """
import os, select, sys

sys.modules["fcntl"] = None  # as on Windows: `import fcntl` raises ImportError
del os.memfd_create, os.sched_getaffinity, select.epoll  # as on macOS and Windows

import cagepool
import gymnasium as gym
"""
PLAY = """
envs = cagepool.make_vec(3, max_steps=2)
envs.reset(seed=0)
print(envs.step([0, 0, 0])[1].shape)
env = gym.make("cagepool/CAGE2-v0")
env.reset(seed=0)
print(env.step(0)[1])
"""
MAKE_WORKERS = """
try:
    cagepool.make_vec(2, env="CartPole-v1", backend="workers")
except RuntimeError as error:
    print(error)
"""
CHOOSE = """
from cagepool.envs.auto_backend import choose_backend
print(choose_backend([gym.Env] * 1000))
"""
WITHOUT_WORKERS = (
    "worker processes need memfd_create and epoll (Linux), which this platform lacks; "
    "use backend 'native' for CAGE-2, 'pipes' or 'sync' for other environments"
)


@pytest.mark.parametrize(
    ("program", "printed"),
    [(PLAY, "(3,)\n0.0"), (MAKE_WORKERS, WITHOUT_WORKERS), (CHOOSE, "pipes")],
    ids=["native", "workers", "auto"],
)
def test_other_platforms_play_natively_and_have_no_workers(program: str, printed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", OTHER_PLATFORM + program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.stdout) == ("", printed + "\n")
