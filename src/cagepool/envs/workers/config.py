"""How a pool of workers behaves."""

import os
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict

from cagepool.envs.settings import Autoreset
from cagepool.envs.workers.true_state import TrueStateMode, check_mode

OnFault: TypeAlias = Literal["raise", "restart"]


class WorkerSettings(TypedDict, total=False):
    """Keywords of `make_vec` for the backend `workers`; `PoolConfig` says what each means."""

    workers: int | None
    timeout: float | None
    on_fault: OnFault
    max_restarts: int
    true_state: TrueStateMode


@dataclass(frozen=True, kw_only=True)
class PoolConfig:
    """How environments are spread over processes, and what happens when one fails."""

    workers: int | None = None
    """Processes, at most one an environment; none: as many as the machine has cores for us."""
    timeout: float | None = 60.0
    """Seconds that an environment may take for one step or reset; none: for ever."""
    on_fault: OnFault = "raise"
    """Whether an environment that raises, dies or hangs is an error or is replaced."""
    max_restarts: int = 100
    """Replacements in all after which the next fault is an error."""
    autoreset: Autoreset = "next_step"
    """When an environment that is over starts anew, in Gymnasium's terms."""
    true_state: TrueStateMode = "never"
    """When `true_state()` is asked for: `every` step, every so many, at the `end`, or `never`."""

    def __post_init__(self) -> None:
        """Check what does not depend on the environment."""
        check_mode(self.true_state)
        if self.autoreset not in ("next_step", "same_step", "disabled"):
            raise ValueError(
                f"autoreset must be next_step, same_step or disabled, got {self.autoreset!r}"
            )
        if self.on_fault not in ("raise", "restart"):
            raise ValueError(f"on_fault must be 'raise' or 'restart', got {self.on_fault!r}")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {self.workers}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be more than 0 seconds, got {self.timeout}")
        if self.max_restarts < 0:
            raise ValueError(f"max_restarts must be at least 0, got {self.max_restarts}")

    @property
    def tick_s(self) -> float:
        """Seconds between two looks at workers that say nothing."""
        return min(0.5, (self.timeout or 2.0) / 4)

    def processes_for(self, num_envs: int) -> int:
        """How many workers there are for so many environments."""
        return min(num_envs, self.workers or len(os.sched_getaffinity(0)))
