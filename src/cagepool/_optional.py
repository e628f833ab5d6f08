"""Optional dependencies: an error that names the extra to install when one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

_PACKAGE_NAMES = {  # on PyPI, where they differ from the names of the modules
    "PIL": "pillow",
    "sb3_contrib": "sb3-contrib",
    "sklearn": "scikit-learn",
    "stable_baselines3": "stable-baselines3",
    "tree": "dm-tree",
    "yaml": "pyyaml",
}


class MissingExtraError(ImportError, ValueError):
    """An optional dependency is not installed; the message says how to install it."""


def remedy(extra: str, *packages: str) -> str:
    """How to install packages; true with and without a clone, before and after a release."""
    return f"pip install {' '.join(packages)}, or install cagepool with its extra `{extra}`"


@contextmanager
def require(feature: str, extra: str | None, *modules: str) -> Iterator[None]:
    """Check that modules are installed before a block that imports them.

    Args:
        feature: The feature that needs them, for the message.
        extra: The extra of this package that installs them; None for its own requirements, which
            an installation without dependencies lacks.
        modules: Names of the modules.
    """
    missing = [
        _PACKAGE_NAMES.get(module, module) for module in modules if find_spec(module) is None
    ]
    if missing:
        how = f"pip install {' '.join(missing)}" if extra is None else remedy(extra, *missing)
        raise MissingExtraError(f"{feature} needs {' and '.join(missing)}: {how}")
    yield
