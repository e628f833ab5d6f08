"""Settings of a study, from a TOML file or from flags, and the trainings that they define."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations, product
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from cagepool import runs
from cagepool._lookup import suggestion
from cagepool.experiments.folder import Training
from cagepool.runs.study_schema import SCORES, ScoresFile, StudyFile, StudyProtocol, first_seeds
from cagepool.sim.names import edition_code
from cagepool.train.config import Settings, TrainConfig, merge_settings
from cagepool.train.presets import preset_settings

MAX_TOML_BYTES = 1_000_000
TABLES = ("study", "settings", "vary", "preset")  # of a TOML file, beside the groups of settings


def read_study(path: Path) -> StudyFile:
    """Read the TOML file of a study; docs/study.md describes it.

    Raises:
        ValueError: the file cannot be read, or a setting is wrong.
    """
    try:
        content = tomllib.loads(runs.read_bytes(path, MAX_TOML_BYTES, follow_link=True).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"a study must be a TOML file, {path} is not: {error}") from error
    try:
        return _study_of_tables(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def make_study(
    base: Settings,
    protocol: StudyProtocol,
    *,
    vary: Mapping[str, Sequence[Any]] | None = None,
    named: Mapping[str, Settings] | None = None,
) -> StudyFile:
    """A study of named settings, of a grid of values, or of both multiplied.

    Args:
        base: Settings of all trainings, by group and name.
        protocol: What is done with each setting.
        vary: Values by name of a setting, such as `ppo.ent_coef`.
        named: Changes of the base, by the name of the setting.

    Raises:
        ValueError: a setting is unknown or wrong.
    """
    settings: dict[str, Settings] = {}
    for name, changes in (named or {"": {}}).items():
        for label, values in _grid(vary or {}):
            full_name = ", ".join(part for part in (name, label) if part) or "base"
            if full_name in settings:
                raise ValueError(f"settings must have different names, got {full_name!r} twice")
            merged = merge_settings(merge_settings(base, changes), values)
            settings[full_name] = _training_settings(full_name, merged)
    if not settings:
        raise ValueError("a study must have a setting, got none")
    for first, second in combinations(settings, 2):
        if settings[first] == settings[second]:
            raise ValueError(f"settings must differ, {second!r} and {first!r} are equal")
    plain = msgspec.json.decode(msgspec.json.encode(settings))  # as a folder is read
    study = StudyFile(cagepool=version("cagepool"), protocol=protocol, settings=plain)
    return with_protocol(study, protocol)


def with_protocol(study: StudyFile, protocol: StudyProtocol) -> StudyFile:
    """The study with another protocol."""
    if protocol.baseline is not None and protocol.baseline not in study.settings:
        known = ", ".join(study.settings)
        raise ValueError(f"baseline must be one of {known}; got {protocol.baseline!r}")
    for edition in protocol.editions:
        edition_code(edition)
    environments = [settings["env"] for settings in study.settings.values()]
    for name in ("green", *(() if protocol.editions else ("edition",))):
        if len({env[name] for env in environments}) > 1:
            remedy = "; name the editions of the evaluation in editions" if name != "green" else ""
            raise ValueError(
                f"all settings must be evaluated on the same games, env.{name} differs{remedy}"
            )
    return StudyFile(cagepool=study.cagepool, protocol=protocol, settings=study.settings)


def parse_vary(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Values by setting from texts such as `ppo.ent_coef=0,0.01`."""
    varied: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not values:
            raise ValueError(f"vary must be NAME=VALUE,VALUE,..., got {text!r}")
        group, setting = _place(name)
        hint = get_type_hints(get_type_hints(TrainConfig)[group])[setting]
        varied[f"{group}.{setting}"] = [_parse(name, value, hint) for value in values.split(",")]
    return varied


@dataclass(frozen=True, kw_only=True)
class StudyTraining(Training):
    """One training of a study."""

    setting: str
    seed: int

    def scores(self) -> ScoresFile:
        """Scores so far; empty if the training has not begun."""
        run = self.existing_run()
        return ScoresFile() if run is None else read_scores(run)


def list_trainings(path: Path, study: StudyFile) -> list[StudyTraining]:
    """All trainings of the study in a folder; those of one seed follow each other."""
    return [
        StudyTraining(
            name=f"{setting}, seed {seed}",
            experiment=path,
            run=f"{_folder_name(number, setting)}/seed-{seed}",
            settings=TrainConfig.from_dict(settings).with_settings(seed=seed).as_dict(),
            setting=setting,
            seed=seed,
        )
        for seed in study.protocol.seeds
        for number, (setting, settings) in enumerate(study.settings.items(), 1)
    ]


def read_scores(run: runs.Run) -> ScoresFile:
    """Scores of a run so far."""
    return runs.read_if_exists(run.path / SCORES, ScoresFile) or ScoresFile()


def has_more_seeds(study: StudyFile, other: StudyFile) -> bool:
    """Whether a study is another one with further seeds."""
    fewer = msgspec.structs.replace(study.protocol, seeds=other.protocol.seeds)
    added = {*study.protocol.seeds} > {*other.protocol.seeds}
    return added and (fewer, study.settings) == (other.protocol, other.settings)


def is_same(study: StudyFile, other: StudyFile) -> bool:
    """Whether two studies have the same settings and protocol."""
    return (study.protocol, study.settings) == (other.protocol, other.settings)


def _study_of_tables(content: Mapping[str, Any]) -> StudyFile:
    tables = {name: table for name, table in content.items() if name != "preset"}
    for name, table in tables.items():
        _check_table(name, table)
    for name, changes in content.get("settings", {}).items():
        _check_table(f"settings.{name}", changes)
    groups = {name: table for name, table in content.items() if name not in TABLES}
    preset = preset_settings(content["preset"]) if "preset" in content else {}
    protocol = {"seeds": 10, **content.get("study", {})}
    unknown = [name for name in protocol if name not in StudyProtocol.__struct_fields__]
    if unknown:
        known = ", ".join(StudyProtocol.__struct_fields__)
        raise ValueError(f"settings of study must be among {known}; got {', '.join(unknown)}")
    if type(protocol["seeds"]) is int:
        protocol["seeds"] = first_seeds(protocol["seeds"])
    varied = {
        name: values if isinstance(values, list) else [values]
        for name, values in _flat(content.get("vary", {})).items()
    }
    return make_study(
        merge_settings(preset, groups),
        _convert_protocol(protocol),
        vary=varied,
        named={name: _nested(changes) for name, changes in content.get("settings", {}).items()},
    )


def _check_table(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a table, got {value!r}")


def _convert_protocol(values: Mapping[str, Any]) -> StudyProtocol:
    try:
        return msgspec.convert(values, StudyProtocol)
    except msgspec.ValidationError as error:
        raise ValueError(f"study: {error}") from None


def _flat(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Values by `group.name`, which TOML reads as nested tables unless it is quoted."""
    flat: dict[str, Any] = {}
    for name, value in tables.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": one for inner, one in value.items()}
        else:
            flat[name] = value
    return flat


def _nested(changes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    nested: dict[str, dict[str, Any]] = {}
    for name, value in _flat(changes).items():
        group, setting = _place(name)
        nested.setdefault(group, {})[setting] = value
    return nested


def _place(name: str) -> tuple[str, str]:
    """Group and name of a setting that is given as `group.name`, or by its flat name."""
    places = TrainConfig.flat_names()
    if tuple(name.split(".")) in places.values():
        group, _, setting = name.partition(".")
        return group, setting
    if name not in places:
        known = [*places, *map(".".join, places.values())]
        hint = suggestion(name, known)
        raise ValueError(f"a setting must have a name such as ppo.ent_coef, got {name!r}{hint}")
    return places[name]


def _grid(vary: Mapping[str, Sequence[Any]]) -> list[tuple[str, Settings]]:
    """Names and changes of all combinations of values; without values, one empty change."""
    places = {_place(name): values for name, values in vary.items()}
    combinations = product(*places.values())
    return [
        (
            ", ".join(
                f"{name}={_text(value)}" for (_, name), value in zip(places, values, strict=True)
            ),
            _nested({".".join(place): value for place, value in zip(places, values, strict=True)}),
        )
        for values in combinations
    ]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return "x".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _training_settings(name: str, settings: Settings) -> Settings:
    """All settings of a training in a study; its seed is set by the study."""
    try:
        config = TrainConfig.from_dict(settings)
    except ValueError as error:
        raise ValueError(f"setting {name!r}: {error}") from error
    if not config.env.is_native:
        raise ValueError(
            f"setting {name!r}: a study plays native games, got {config.env.id} with "
            f"{config.env.backend}"
        )
    if config.env.scenario is not None:
        raise ValueError(
            f"setting {name!r}: a study scores games of CAGE-2, got env.scenario "
            f"{config.env.scenario}"
        )
    if config.run.target_score is not None or config.run.eval_patience or config.order.stops_early:
        raise ValueError(
            f"setting {name!r}: a study plays the same budget in all runs, got run.target_score, "
            "run.eval_patience or order.early_stopping"
        )
    # One thread per training: a study has as many trainings at a time as there are cores.
    return config.with_settings(seed=0, threads=1, backend="auto", ray_actors=1).as_dict()


def _folder_name(number: int, setting: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", setting.lower()).strip("-")[:48].rstrip("-")
    return f"{number:02d}-{words}" if words else f"{number:02d}"


def _parse(name: str, text: str, hint: Any) -> Any:
    """Value of a setting from its text on the command line."""
    options = get_args(hint)
    if text == "none" and NoneType in options:
        return None
    if get_origin(hint) is tuple:
        return [_number(name, part, int) for part in text.split("x")]
    kinds = [kind for kind in (bool, int, float) if hint is kind or kind in options]
    if not kinds:
        return text
    if kinds[0] is bool:
        if text not in ("true", "false"):
            raise ValueError(f"vary: {name} must be true or false, got {text!r}")
        return text == "true"
    return _number(name, text, kinds[0])


def _number(name: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        words = "a whole number" if kind is int else "a number"
        raise ValueError(f"vary: {name} must be {words}, got {text!r}") from None
