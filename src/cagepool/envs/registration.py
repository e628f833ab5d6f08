"""Makes `cagepool/CAGE2-v0` known to Gymnasium, without importing Gymnasium for it.

Gymnasium has had no plugins since 1.0: an environment is known once its package has called
`register`. We do so as soon as both packages have been imported, whichever comes first.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

ENVIRONMENT_ID = "cagepool/CAGE2-v0"


def register() -> None:
    """Enter the environment in Gymnasium's registry, unless it is there."""
    from gymnasium.envs import registration  # noqa: PLC0415 - only once Gymnasium is wanted

    if ENVIRONMENT_ID in registration.registry:
        return
    registration.register(
        ENVIRONMENT_ID,
        entry_point="cagepool.envs.single:Cage2Env",
        vector_entry_point="cagepool.envs.native:NativeVectorEnv",
    )


def register_with_gymnasium() -> None:
    """Register now if Gymnasium has been imported, else right after it will have been."""
    if "gymnasium" in sys.modules:
        register()
    elif not any(isinstance(finder, _GymnasiumFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _GymnasiumFinder())


class _GymnasiumFinder(MetaPathFinder):
    """Finds Gymnasium once, as Python would have, and registers when it has been loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                register()

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec
