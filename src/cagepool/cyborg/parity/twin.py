"""The native game beside CybORG, true state by true state."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from cagepool.cyborg.dict_state import true_state_dict
from cagepool.cyborg.parity.compare import Mismatch
from cagepool.cyborg.parity.recorder import Recording, Sessions, sessions_of
from cagepool.sim import Batch, BatchConfig, dtypes
from cagepool.sim.names import HOSTS

Draws: TypeAlias = dict[str, int]

COPIES = 256
# The rarest luck, an undetected fourth-best exploit on one host of 13 while green scans one of 8,
# is one in 70,000.
ATTEMPTS = 100_000_000 // COPIES
_DRAWN = ("green_host", "red_target", "exploit", "detected")
_ALL = np.arange(COPIES)


class Twin:
    """A native game that is led along recorded episodes.

    Its luck stays its own: every step is played by many copies of the game, over and over, until
    one of them has had the recorded luck; that one goes on.
    """

    def __init__(self, **settings: Any) -> None:
        """Make a game as `sim.BatchConfig` says."""
        self._batch = Batch(COPIES, BatchConfig(autoreset="disabled", **settings))
        self._seeds = np.arange(COPIES, dtype=np.uint64)

    def mismatches(self, recording: Recording) -> Iterator[Mismatch]:
        """Differences of true states and sessions; the draws must be ones that the game can make.

        Raises:
            RuntimeError: no luck led along the recording.
        """
        self._batch.reset(self._seeds)
        trace = recording.trace
        for step, action in enumerate(trace["blue_action"][0].tolist()):
            self._step(action, {name: int(trace[name][0, step]) for name in _DRAWN})
            yield from self._true_state_faults(step, recording.true_states[0, step])
            if step in recording.sessions:
                yield from self._session_faults(step, recording.sessions[step])

    def _step(self, action: int, draws: Draws) -> None:
        batch = self._batch
        start = batch.save(_ALL[:1])
        for _ in range(ATTEMPTS):
            self._seeds += np.uint64(COPIES)
            batch.reseed(_ALL, self._seeds)
            batch.step(np.full(COPIES, action))
            lucky = np.all([batch.moves[name] == drawn for name, drawn in draws.items()], axis=0)
            if lucky.any():
                chosen = batch.save(np.flatnonzero(lucky)[:1])
                batch.restore(_ALL, chosen * COPIES)
                return
            batch.restore(_ALL, start * COPIES)
        raise RuntimeError(f"the native game must be able to draw {draws}, it never did")

    def _true_state_faults(self, step: int, truth: Any) -> Iterator[Mismatch]:
        own = self._batch.true_state[0]
        if truth.tobytes() == own.tobytes():
            return
        for name in dtypes.TRUE_STATE.names or ():
            if np.any(truth[name] != own[name]):
                yield Mismatch(0, step, f"true_state {name}", str(truth[name]), str(own[name]))

    def _session_faults(self, step: int, sessions: Sessions) -> Iterator[Mismatch]:
        own = sessions_of(true_state_dict(self._batch, 0))
        for host in HOSTS:
            if sessions[host] != own[host]:
                yield Mismatch(0, step, f"sessions {host}", str(sessions[host]), str(own[host]))
