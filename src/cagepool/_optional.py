"""Optional dependencies: an error that names the extra to install when one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

_PACKAGE_NAMES = {  # on PyPI, where they differ from the names of the modules
    "sb3_contrib": "sb3-contrib",
    "sklearn": "scikit-learn",
    "stable_baselines3": "stable-baselines3",
    "tree": "dm-tree",
}


class MissingExtraError(ImportError, ValueError):
    """An optional dependency is not installed; the message says how to install it."""


@contextmanager
def require(feature: str, extra: str, *modules: str) -> Iterator[None]:
    """Check that modules are installed before a block that imports them.

    Args:
        feature: The feature that needs them, for the message.
        extra: The extra of this package that installs them.
        modules: Names of the modules.

    Raises:
        MissingExtraError: at least one module is not installed.
    """
    missing = [
        _PACKAGE_NAMES.get(module, module) for module in modules if find_spec(module) is None
    ]
    if missing:
        raise MissingExtraError(
            f"{feature} needs {' and '.join(missing)}: pip install 'cagepool[{extra}]'"
        )
    yield
