"""One thread at a time."""

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Guarded(Protocol):
    """Has methods that must not run at the same time."""

    running: Lock


Self = TypeVar("Self", bound=Guarded)


def alone(
    method: Callable[Concatenate[Self, Parameters], Result],
) -> Callable[Concatenate[Self, Parameters], Result]:
    """Let a method raise RuntimeError at once while another thread is in one of these."""

    @wraps(method)
    def guarded(
        self: Self, /, *arguments: Parameters.args, **keywords: Parameters.kwargs
    ) -> Result:
        if not self.running.acquire(blocking=False):
            raise RuntimeError(
                "an environment must be used by one thread at a time; another call is under way"
            )
        try:
            return method(self, *arguments, **keywords)
        finally:
            self.running.release()

    return guarded
