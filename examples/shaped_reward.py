"""A reward function: fewer needless Restores, and potential-based shaping on red's true access.

cagepool train --reward shaped_reward:shaped --total-episodes 2000 --out run    # in examples
cagepool evaluate run                                                       # official reward
python examples/shaped_reward.py
"""

import numpy as np

import cagepool
from cagepool.envs import RewardStep
from cagepool.types import Bools, Bytes, Float64s

DISCOUNT = 0.99


def shaped(step: RewardStep) -> Float64s:
    """The official reward, with a penalty for needless Restores and a potential."""
    gained = DISCOUNT * potential(step.true_state.access) - potential(step.true_state_before.access)
    return step.reward + gained - 0.5 * needless_restores(step)


def potential(access: Bytes) -> Float64s:
    """Less with every host that red holds; access is 0 none, 1 user, 2 privileged."""
    held: Float64s = np.count_nonzero(access, axis=1).astype(np.float64)
    return -0.2 * held


def needless_restores(step: RewardStep) -> Bools:
    """Games in which blue restored a host on which red had no session."""
    games = np.arange(len(step))
    access = step.true_state_before.access[games, step.moves.blue_host_index]
    is_needless: Bools = (step.moves.blue == "Restore") & (access == 0)
    return is_needless


def main() -> None:
    """Play random actions and print the returns of both rewards."""
    envs = cagepool.make_vec(8, reward=shaped, moves=True, max_steps=30)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    for _ in range(30):
        *_, infos = envs.step(envs.action_space.sample())
    print(envs.describe(0))
    for own, official in zip(infos["episode"]["r"], infos["official_return"], strict=True):
        print(f"return {own:7.2f}, official return {official:7.2f}")


if __name__ == "__main__":
    main()
