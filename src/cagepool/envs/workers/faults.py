"""What can go wrong with a worker, in words."""

from typing import Any

from cagepool.envs.workers.process import Line
from cagepool.envs.workers.shared_memory import Marks
from cagepool.errors import EnvironmentFault


def raised(line: Line, index: int, trace: str) -> EnvironmentFault:
    """An environment raised an exception."""
    last = trace.strip().rpartition("\n")[2]
    return _fault(line, index, f"{_name(index)} raised while being {line.doing}: {last}", trace)


def died(line: Line, index: int) -> EnvironmentFault:
    """A worker ended by itself or was killed."""
    doing = f" while {_name(index)} was being {line.doing}" if index != Marks.NOWHERE else ""
    where = f"environments {line.task.start} to {line.task.stop - 1}"
    return _fault(line, index, f"{line.last_words()}{doing}; it had {where}", line.trace)


def hung(line: Line, index: int, timeout_s: float) -> EnvironmentFault:
    """A worker has not answered in time."""
    who = _name(index) if index != Marks.NOWHERE else f"worker {line.task.worker}"
    return _fault(
        line, index, f"{who} did not answer within {timeout_s} s while being {line.doing}"
    )


def differs(line: Line) -> EnvironmentFault:
    """A worker's environments are not like those of the others."""
    sentence = "all environments must have the same spaces and the same form of true state"
    return _fault(line, line.task.start, f"{sentence}; {_name(line.task.start)} differs")


def values_of(line: Line) -> list[Any]:
    """What the environments of a worker have answered to a call.

    Raises:
        EnvironmentFault: one of them raised.
    """
    answer = line.answer
    assert answer is not None
    if answer.trace:
        raise raised(line, answer.environment, answer.trace)
    return answer.values


def _name(index: int) -> str:
    return f"environment {index}"


def _fault(line: Line, index: int, sentence: str, trace: str = "") -> EnvironmentFault:
    known = None if index == Marks.NOWHERE else index
    return EnvironmentFault(sentence, index=known, worker=line.task.worker, trace=trace)
