"""What the single and the vector environment share: a batch, until they are closed."""

from gymnasium.error import ClosedEnvironmentError

from cagepool.sim.batch import Batch
from cagepool.sim.render import render_text


class BatchHolder:
    """Has a batch; letting go of it ends its threads."""

    render_mode: str | None
    _held: Batch | None = None

    @property
    def batch(self) -> Batch:
        """The games.

        Raises:
            ClosedEnvironmentError: the environment was closed.
        """
        if self._held is None:
            raise ClosedEnvironmentError("an environment must not be used after it was closed")
        return self._held

    def _pictures(self) -> tuple[str, ...]:
        """A picture of every game.

        Raises:
            RuntimeError: no render mode was asked for.
        """
        if self.render_mode is None:
            raise RuntimeError("render needs an environment made with render_mode='ansi'")
        return tuple(render_text(self.batch, game) for game in range(self.batch.games))
