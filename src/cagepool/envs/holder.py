"""What the single and the vector environment share: a batch, until they are closed."""

from gymnasium.error import ClosedEnvironmentError

from cagepool.sim.batch import Batch


class BatchHolder:
    """Has a batch; letting go of it ends its threads."""

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
