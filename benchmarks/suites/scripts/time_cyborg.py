"""Time steps of CybORG with random blue actions, resets included: time_cyborg.py RED."""

import inspect
import random
import sys
import time
from pathlib import Path

import CybORG
from CybORG import Agents
from CybORG.Agents.Wrappers import ChallengeWrapper

EPISODE_STEPS = 100
ACTIONS = 145

scenario = Path(inspect.getfile(CybORG)).parent / "Shared" / "Scenarios" / "Scenario2.yaml"
simulator = CybORG.CybORG(str(scenario), "sim", agents={"Red": getattr(Agents, sys.argv[1])})
env = ChallengeWrapper(env=simulator, agent_name="Blue")
env.reset()
step = 0
for line in sys.stdin:
    start = time.perf_counter()
    for _ in range(int(line)):
        env.step(random.randrange(ACTIONS))
        step += 1
        if step % EPISODE_STEPS == 0:
            env.reset()
    sys.stdout.write(f"{time.perf_counter() - start}\n")
    sys.stdout.flush()
