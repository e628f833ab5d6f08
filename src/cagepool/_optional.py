"""Libraries that only some parts need: what to install where one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

_NAMES = {  # on the registries, where they differ from those in Python
    "sb3_contrib": "sb3-contrib",
    "sklearn": "scikit-learn",
    "stable_baselines3": "stable-baselines3",
    "tree": "dm-tree",
}


class MissingExtraError(ImportError, ValueError):
    """A library is not installed; the sentence says what to install."""


@contextmanager
def needed(by: str, extra: str, *modules: str) -> Iterator[None]:
    """Stands around imports of optional libraries, or of our modules that import them.

    Args:
        by: What needs them, the beginning of the sentence.
        extra: Which of our extras brings them.
        modules: Their names in Python.

    Raises:
        MissingExtraError: at least one is not there.
    """
    missing = [_NAMES.get(module, module) for module in modules if find_spec(module) is None]
    if missing:
        raise MissingExtraError(
            f"{by} needs {' and '.join(missing)}: pip install 'cagepool[{extra}]'"
        )
    yield
