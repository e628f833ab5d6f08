"""What every bench gives: groups of measurements, and the ratios that claims are made of."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass

from cagepool.bench.measure import Measurement
from cagepool.bench.system_load import Busy


@dataclass(frozen=True, kw_only=True)
class Result(ABC):
    """What was measured, group by group; the members of a group took turns."""

    bench: str = ""
    """Its name in the catalogue."""
    machine: dict[str, object]
    """What it was measured on, and how busy that was before."""
    load_after: float
    busy: Busy | None = None
    """How busy others kept the machine meanwhile; none: unknown."""
    groups: dict[str, list[Measurement]]

    @property
    @abstractmethod
    def ratios(self) -> dict[str, float]:
        """The figures that claims are made of, each from one group."""

    def facts(self) -> dict[str, object]:
        """What else belongs into the JSON."""
        return {}

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "bench": self.bench,
            "machine": self.machine,
            "load_after": self.load_after,
            **(asdict(self.busy) if self.busy else {}),
            **self.facts(),
            "groups": {name: [m.as_dict() for m in group] for name, group in self.groups.items()},
            "ratios": self.ratios,
        }
