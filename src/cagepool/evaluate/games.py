"""Games played together, natively or by CybORG: what a defender and a score can ask of them."""

from typing import Any, Protocol

from numpy.typing import NDArray

from cagepool.types import Float64s, Int32s, Int64s, Records


class Games(Protocol):
    """What `sim.Batch` has of a batch; its arrays are written by `step`."""

    @property
    def games(self) -> int:
        """How many."""

    @property
    def observations(self) -> NDArray[Any]:
        """What blue sees, (games, OBSERVATION_SIZE)."""

    @property
    def rewards(self) -> Float64s:
        """Of the last step, (games,)."""

    @property
    def moves(self) -> Records:
        """What was done in the last step, (games,), fields of `layout.MOVES`."""

    @property
    def true_state(self) -> Records:
        """What is true after the last step, (games,), fields of `layout.TRUE_STATE`."""

    @property
    def counters(self) -> Int32s:
        """How an order was kept so far, (games, COUNTER_COUNT); no rows without an order."""

    def step(self, actions: Int64s, /) -> object:
        """Play one action in every game."""

    def stream_key(self, game: int, /) -> int:
        """A number that the luck of the game follows from."""
