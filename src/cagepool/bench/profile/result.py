"""What a profile gives."""

from dataclasses import asdict, dataclass
from typing import Any, Self

from cagepool.bench import machine
from cagepool.bench.profile.accounts import Block, settled
from cagepool.bench.profile.clock import Stage, StageClock
from cagepool.bench.profile.slices import Slices
from cagepool.bench.system_load import Busy, Watch

MAIN = "main"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Where the time went."""

    what: str
    """`train` or `step`."""
    settings: dict[str, Any]
    machine: dict[str, object]
    load_after: float
    busy: Busy | None
    """How busy others kept the machine meanwhile; none: unknown."""
    steps: int
    """Steps of all environments."""
    threads: dict[str, Block]
    """The main one is the program's wall time; the others ran beside it."""
    turns: dict[str, Any]
    """How slices that were looked into compare with those that were not."""
    seen_seconds: float
    """Of the slices that were looked into."""
    traffic: dict[str, float]
    """Of one step of all environments."""
    notes: tuple[str, ...]

    @property
    def wall_seconds(self) -> float:
        """All of the main thread's time."""
        return self.threads[MAIN].total

    def stages(self, thread: str = MAIN) -> dict[str, float]:
        """Seconds by stage, in the order of the stages; they add up to the wall time."""
        spent = self.threads[thread].stages()
        return {str(stage): spent[stage] for stage in Stage if stage in spent}

    @property
    def overhead(self) -> dict[str, Any]:
        """What looking cost, of the wall time: counted call by call, and by taking turns."""
        counted = sum(block.stages()[Stage.PROFILER] for block in self.threads.values())
        slower = self.turns["slower"]
        cost = None if slower is None else self.seen_seconds * slower / (1 + slower)
        return {
            "counted": counted / self.wall_seconds,
            "by_turns": None if cost is None else cost / self.wall_seconds,
            **self.turns,
        }

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "what": self.what,
            "settings": self.settings,
            "machine": self.machine,
            "load_after": self.load_after,
            **(asdict(self.busy) if self.busy else {}),
            "steps": self.steps,
            "wall_seconds": self.wall_seconds,
            "stages": self.stages(),
            "threads": {name: block.as_dict() for name, block in self.threads.items()},
            "overhead": self.overhead,
            "traffic": self.traffic,
            "notes": self.notes,
        }


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a profile is of."""

    what: str
    settings: dict[str, Any]
    machine: dict[str, object]
    """As it was before."""
    watch: Watch
    """Since then."""

    @classmethod
    def now(cls, what: str, settings: dict[str, Any]) -> Self:
        """With the machine as it is."""
        return cls(what=what, settings=settings, machine=machine.describe(), watch=Watch())


def result_of(
    subject: Subject, clock: StageClock, slices: Slices, traffic: dict[str, float], notes: list[str]
) -> Profile:
    """The result once the clock has stopped."""
    return Profile(
        what=subject.what,
        settings=subject.settings,
        machine=subject.machine,
        load_after=machine.load(),
        busy=subject.watch.busy(),
        steps=sum(turn.steps for turn in slices.turns),
        threads={
            name: settled(lane, slices.calibration.cost, slices.seen, slices.unseen)
            for name, lane in clock.lanes.items()
        },
        turns=slices.overhead,
        seen_seconds=slices.seen_seconds,
        traffic=traffic,
        notes=tuple(notes),
    )
