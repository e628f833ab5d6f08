"""Look up what a user names: objects as `module:attribute`, names of a facade, nearest names."""

import traceback
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import reduce
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


def load_object(reference: str, setting: str) -> Any:
    """Import the object that a reference names, such as `my.module:policy`.

    Args:
        reference: Module and attribute, joined by a colon; the attribute may be dotted.
        setting: Name of what the reference is for, such as `env`: subject of the error sentences.
    """
    module_name, _, attribute = reference.partition(":")
    if not is_reference(reference):
        raise ValueError(f"{setting} must be module:attribute, got {reference!r}")
    module = load_module(module_name, setting)
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        names = [name for name in vars(module) if not name.startswith("_")]
        raise ValueError(
            f"{setting} names {attribute!r}, which the module {module_name!r} does not have"
            f"{suggestion(attribute, names)}"
        ) from error


def load_module(name: str, setting: str) -> ModuleType:
    """Import a module that a user names."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise ValueError(
                f"{setting} names the module {name!r}, which does not exist"
            ) from error
        raise _import_error(name, setting, error) from error
    except (Exception, SystemExit) as error:  # whatever the user's module raises
        raise _import_error(name, setting, error) from error


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """`__getattr__` of a package whose public names are imported on first use, from their homes."""

    def get_name(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return get_name


def is_reference(name: str) -> bool:
    """Whether a name has the form `module:attribute`, both of them dotted identifiers."""
    module, colon, attribute = name.partition(":")
    parts = (*module.split("."), *attribute.split("."))
    return bool(colon) and all(part.isidentifier() for part in parts)


def suggestion(given: str, choices: Iterable[str]) -> str:
    """The nearest of the choices as the end of a sentence; empty if none is similar."""
    nearest = get_close_matches(given, [*choices], n=1)
    return f", did you mean {nearest[0]}?" if nearest else ""


def _import_error(name: str, setting: str, error: BaseException) -> ValueError:
    """The sentence for a module that raises, with the line of that module if it has one."""
    files = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in files if not frame.filename.startswith("<frozen ")]
    own = own[2:]  # after this function's caller and `importlib.import_module`
    place = f" ({Path(own[0].filename).name}, line {own[0].lineno})" if own else ""
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    return ValueError(f"{setting} names the module {name!r}, which raises {reason}{place}")
