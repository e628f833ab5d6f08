"""Refuses concurrent calls: an environment must be used by one thread at a time."""

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class HasCallLock(Protocol):
    """Has a lock that is held while a guarded method runs."""

    call_lock: Lock


Self = TypeVar("Self", bound=HasCallLock)


def acquire_call_lock(lock: Lock) -> None:
    """Acquire the lock without waiting; the caller must release it.

    Raises:
        RuntimeError: another thread holds the lock.
    """
    if not lock.acquire(blocking=False):
        raise RuntimeError(
            "an environment must be used by one thread at a time; another call is under way"
        )


def one_thread_at_a_time(
    method: Callable[Concatenate[Self, Parameters], Result],
) -> Callable[Concatenate[Self, Parameters], Result]:
    """Decorate a method to raise RuntimeError while another thread is in a decorated method."""

    @wraps(method)
    def guarded(
        self: Self, /, *arguments: Parameters.args, **keywords: Parameters.kwargs
    ) -> Result:
        acquire_call_lock(self.call_lock)
        try:
            return method(self, *arguments, **keywords)
        finally:
            self.call_lock.release()

    return guarded
