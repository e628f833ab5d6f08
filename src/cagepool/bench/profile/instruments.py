"""Methods of live objects that are watched for a while, and are as they were before and after."""

from collections.abc import Callable
from typing import Any, Self

from cagepool.bench.profile.clock import Spot, Stage, StageClock

Make = Callable[[Callable[..., Any]], Callable[..., Any]]


class Instruments:
    """Stand-ins for methods, which hold only while these are on; the last put on goes first."""

    def __init__(self) -> None:
        """Begin with none."""
        self._wanted: list[tuple[Any, str, Make]] = []
        self._covered: list[tuple[Any, str, Any, bool]] = []

    def put(self, owner: Any, method: str, make: Make) -> None:
        """Let what `make` makes of a method be called in its place."""
        getattr(owner, method)  # a name that is gone is noticed here
        self._wanted.append((owner, method, make))

    def watch(self, clock: StageClock, owner: Any, method: str, stage: Stage) -> None:
        """Let the time of a method be counted."""
        spot = Spot(f"{name_of(owner)}.{method.lstrip('_')}", stage)
        self.put(owner, method, lambda called: clock.watched(called, spot))

    def put_on(self) -> None:
        """Let the stand-ins hold."""
        for owner, method, make in self._wanted:
            own = vars(owner)
            self._covered.append((owner, method, own.get(method), method in own))
            setattr(owner, method, make(getattr(owner, method)))

    def take_off(self) -> None:
        """Let everything be as it was."""
        while self._covered:
            owner, method, before, was_own = self._covered.pop()
            if was_own:
                setattr(owner, method, before)
            else:
                delattr(owner, method)

    def __enter__(self) -> Self:
        self.put_on()
        return self

    def __exit__(self, *_: object) -> None:
        self.take_off()


def name_of(owner: Any) -> str:
    """How an object, a class or a module is called in tables."""
    return str(getattr(owner, "__name__", type(owner).__name__)).rpartition(".")[2]
