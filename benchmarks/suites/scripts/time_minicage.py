"""Time steps of MiniCAGE with random blue actions, resets included: FOLDER GAMES RED."""

import sys
import time

import numpy as np

folder, games, red = sys.argv[1], int(sys.argv[2]), sys.argv[3]
sys.path.insert(0, folder)

import mini_CAGE  # noqa: E402 - from that folder

EPISODE_STEPS = 100
ACTIONS = 53
REDS = {"B_lineAgent": mini_CAGE.B_line_minimal, "RedMeanderAgent": mini_CAGE.Meander_minimal}

np.random.seed(0)  # noqa: NPY002 - the game draws from it
env = mini_CAGE.SimplifiedCAGE(num_envs=games)
attacker = REDS[red]()
state, _ = env.reset()
step = 0
for line in sys.stdin:
    start = time.perf_counter()
    for _ in range(int(line)):
        blue = np.random.randint(0, ACTIONS, (games, 1))  # noqa: NPY002 - see above
        move = attacker.get_action(observation=state["Red"]).astype(int)
        state, *_ = env.step(red_action=move, blue_action=blue)
        step += 1
        if step % EPISODE_STEPS == 0:
            state, _ = env.reset()
    sys.stdout.write(f"{time.perf_counter() - start}\n")
    sys.stdout.flush()
