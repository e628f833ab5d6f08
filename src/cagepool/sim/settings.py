"""Settings of a game: the one declaration of their names, types and defaults."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Literal, TypeAlias, TypedDict

import numpy as np

from cagepool import _core
from cagepool.errors import short_repr
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.scenarios.suites import ScenarioLike
from cagepool.sim.compliance import parse_order
from cagepool.sim.names import edition_code, red_class_names

Edition: TypeAlias = Literal["2.1", "leaderboard"]
Knowledge: TypeAlias = Literal["true", "observed"]
Definition: TypeAlias = Literal["host", "fix-type"]

# Defaults of a single game, for settings that take no sequence of values.
DEFAULT_RED = "B_lineAgent"
DEFAULT_EDITION: Edition = "2.1"
DEFAULT_MAX_STEPS = 100
DEFAULT_GREEN = False

KNOWLEDGE = {"true": _core.Knowledge.TRUE, "observed": _core.Knowledge.OBSERVED}
DEFINITIONS = {"host": _core.Definition.HOST, "fix-type": _core.Definition.FIX_TYPE}
PER_GAME = ("red", "edition", "max_steps", "green", "order")
"""Settings that may have one value per game."""


@dataclass(frozen=True, kw_only=True)
class GameSettings:
    """Settings of games; a sequence has one value per game."""

    red: str | Sequence[str] = DEFAULT_RED
    """Red agent by class name or alias. `a+b` and `mix` draw an agent per episode, `a:0.9+b:0.1`
    with these probabilities; with `given` the caller plays red."""
    edition: str | Sequence[str] = DEFAULT_EDITION
    """`2.1`, the current game, or `leaderboard`, the game of the published scores."""
    max_steps: int | Sequence[int] = DEFAULT_MAX_STEPS
    """Steps after which an episode is truncated."""
    green: bool | Sequence[bool] = DEFAULT_GREEN
    """Whether GreenAgent scans hosts."""
    order: str | Sequence[str] | None = None
    """Workflow order for compliance; None: compliance is not measured."""
    alignment: float = 0.0
    """Lambda of the alignment reward."""
    knowledge: Knowledge = "true"
    """Threatened hosts: those with a red session (`true`), or those that blue's table reports
    (`observed`)."""
    definition: Definition = "host"
    """Compliance as specified (`host`), or by the older definition (`fix-type`), for comparison."""
    scenario: Scenario | Sequence[Scenario] | None = None
    """Scenario, or scenarios; None: CAGE-2."""
    scenario_per: Literal["env", "episode"] = "env"
    """`env`: game i plays scenario i modulo their number. `episode`: drawn for every episode."""
    layout: Layout | None = None
    """Slots and kinds of actions of observations and actions; None: those of the scenarios."""

    def __post_init__(self) -> None:
        """Check the settings that do not depend on the number of games."""
        check_choice("knowledge", self.knowledge, KNOWLEDGE)
        check_choice("definition", self.definition, DEFINITIONS)
        check_choice("scenario_per", self.scenario_per, ("env", "episode"))
        if not isinstance(self.alignment, Real) or not 0 <= self.alignment < np.inf:
            raise ValueError(
                f"alignment must be a number of at least 0, got {short_repr(self.alignment)}"
            )
        if self.alignment and self.order is None:
            raise ValueError(
                f"alignment needs an order, got alignment={self.alignment} and no order"
            )

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios."""
        if self.scenario is None:
            return (CAGE2,)
        return (self.scenario,) if isinstance(self.scenario, Scenario) else (*self.scenario,)


GAME_SETTINGS = tuple(field.name for field in fields(GameSettings))


@dataclass(frozen=True, kw_only=True)
class SharedSettings(GameSettings):
    """Settings with one value for all games."""

    red: str = DEFAULT_RED
    edition: str = DEFAULT_EDITION
    max_steps: int = DEFAULT_MAX_STEPS
    green: bool = DEFAULT_GREEN
    order: str | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        red_class_names(self.red)
        edition_code(self.edition)
        if not 1 <= self.max_steps <= _core.MAX_STEPS:
            raise ValueError(f"max_steps must be from 1 to {_core.MAX_STEPS}, got {self.max_steps}")
        if self.order is not None:
            parse_order(self.order)


class GameKeywords(TypedDict, total=False):
    """The fields of `GameSettings` as keywords of a function; scenarios also by name."""

    red: str | Sequence[str]
    edition: str | Sequence[str]
    max_steps: int | Sequence[int]
    green: bool | Sequence[bool]
    order: str | Sequence[str] | None
    alignment: float
    knowledge: Knowledge
    definition: Definition
    scenario: ScenarioLike | None
    scenario_per: Literal["env", "episode"]
    layout: Layout | None


def check_choice(name: str, value: str, known: Collection[str]) -> None:
    """Raise ValueError if the value is not a known one."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}; got {short_repr(value)}")
