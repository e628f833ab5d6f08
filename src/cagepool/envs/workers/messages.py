"""What the caller and a worker tell each other beside words."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from cagepool.envs.settings import Autoreset
from cagepool.envs.workers.shared_memory import Form
from cagepool.envs.workers.true_state import TrueStateMode


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a worker is for."""

    worker: int
    workers: int
    num_envs: int  # of all workers
    start: int  # index of its first environment
    stop: int  # index after that of its last
    makers: bytes  # pickled list of functions that make its environments
    autoreset: Autoreset
    true_state: TrueStateMode
    looks: bool  # whether it may look for requests for a moment before it sleeps
    restart: bool  # whether an environment that raises is made anew
    lost: str = ""  # how its predecessor ended, if it had one


class Made(NamedTuple):
    """All environments are there."""

    form: Form


class Given(NamedTuple):
    """Infos of environments, each a pickled dictionary, before the words that go with them."""

    infos: list[tuple[int, bytes]]


class Fault(NamedTuple):
    """An environment has raised."""

    environment: int
    trace: str


class Answer(NamedTuple):
    """What a call has given for each environment, or the traceback of the first that raised."""

    values: list[Any]
    environment: int = -1
    trace: str = ""
