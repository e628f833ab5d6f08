"""Load a policy by its name: a run, the zoo, a model file, code of a user, a scripted defender."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from cagepool import runs
from cagepool._lookup import is_reference, load_object, suggestion
from cagepool._optional import MissingExtraError
from cagepool.policy.defenders import SCRIPTED, Defender, as_defender, scripted_defender
from cagepool.policy.policy import Policy, PolicySettings

ZOO = "zoo:"
_ZOO_RUNS = Path(__file__).parents[1] / "zoo"  # run folders
_RLLIB_CHECKPOINT = "rllib_checkpoint.json"  # in every checkpoint folder of RLlib


@dataclass(frozen=True)
class LoadOptions:
    """What the loaders of some forms need."""

    which: str = "best"
    network: str | None = None
    trust_pickle: bool = False


def load(
    name: str | Path, which: str = "best", *, network: str | None = None, trust_pickle: bool = False
) -> Defender:
    """Load a policy of any form.

    Args:
        name: Run folder, `zoo:NAME` for a policy that comes with the package, ONNX file,
            `module:attribute` (see `FunctionDefender`), scripted defender, `.zip` of
            Stable-Baselines3, or RLlib checkpoint.
        which: Checkpoint of a run folder: `best`, by the evaluations on other seeds during
            training, or `last`.
        network: `module:Class` of a run with a network of its own. The class is code that the run
            folder names; it is called only if you name it too.
        trust_pickle: Load pickles, of Stable-Baselines3 and RLlib, which can run any code.

    Raises:
        ValueError: there is no such policy, it can't be read, or it holds pickles that the caller
            does not trust.
        ImportError: it needs a library that is not installed.
    """
    options = LoadOptions(which, network, trust_pickle)
    is_path = isinstance(name, Path)
    name = str(name)
    if which != "best" and not (runs.is_run(Path(name)) or is_path):
        raise ValueError(f"only a run folder has a {which} checkpoint, got {name!r}")
    for loader in LOADERS:
        if loader.fits(name):
            return loader.load(name, options)
    if is_path:
        return load_run(name, which, network=network)
    known = (*SCRIPTED, *zoo_names())
    raise ValueError(
        f"a defender must be a run folder, a model file, module:policy, or one of "
        f"{', '.join(known)}; got {name!r}{suggestion(name, known)}"
    )


def load_run(run: str | Path, which: str = "best", *, network: str | None = None) -> Policy:
    """Load the policy of a run folder, or of the zoo; see `load`.

    Raises:
        ValueError: the folder is not a run folder, is damaged, has no such policy, or names
            another network than you.
        ImportError: the network needs PyTorch, which is not installed.
    """
    is_zoo = isinstance(run, str) and run.startswith(ZOO)
    opened = runs.open_run(zoo_folder(str(run)) if is_zoo else run)
    if which not in ("best", "last"):
        raise ValueError(f"which must be best or last, got {which!r}")
    kind = which if opened.checkpoint_updates(which) else "last"
    checkpoint = opened.checkpoint(kind)
    try:
        settings = PolicySettings.from_dict(opened.settings)
        _check_named_network(settings.ppo.network, network, opened.path)
        policy = Policy(checkpoint.arrays, opened.settings)
    except (MissingExtraError, _UnnamedNetworkError):
        raise
    except ValueError as error:
        raise runs.damage_error(opened.path, error) from error
    policy.name = str(run) if is_zoo else opened.path.resolve().name
    policy.run = None if is_zoo else opened.path
    policy.checkpoint = f"{kind}-{opened.checkpoint_updates(kind)[-1]:06d}"
    return policy


def zoo_names() -> list[str]:
    """Names of all policies in the zoo, with the prefix."""
    return sorted(f"{ZOO}{folder.name}" for folder in _ZOO_RUNS.iterdir() if folder.is_dir())


def zoo_folder(name: str) -> Path:
    """Run folder of a policy in the zoo. It is part of the package: do not write to it."""
    names = zoo_names()
    if name not in names:
        known = f"a policy of the zoo must be one of {', '.join(names)}"
        raise ValueError(f"{known}; got {name!r}{suggestion(name, names)}")
    return _ZOO_RUNS / name.removeprefix(ZOO)


class _UnnamedNetworkError(ValueError):
    """Code that a run folder names is not what the caller named."""


def _check_named_network(network: str, named: str | None, path: Path) -> None:
    if named is not None and named != network:
        raise _UnnamedNetworkError(f"the network of {path} is {network}, got {named}")
    if is_reference(network) and named is None:
        raise _UnnamedNetworkError(
            f"{path} names code to be called, {network}: if you trust it, name it too, as "
            f"--network {network} or load(..., network={network!r})"
        )


class Loader(NamedTuple):
    """How policies of one form are recognized and loaded."""

    fits: Callable[[str], bool]
    load: Callable[[str, LoadOptions], Defender]


def _load_onnx(name: str, _options: LoadOptions) -> Defender:
    from cagepool.policy.onnx import load_onnx  # noqa: PLC0415 - an optional library

    return load_onnx(Path(name))


def _load_pickle(reference: str) -> Callable[[str, LoadOptions], Defender]:
    """A loader of an integration, `module:function`, which is imported when it is needed."""

    def load_trusted(name: str, options: LoadOptions) -> Defender:
        if not options.trust_pickle:
            raise ValueError(
                f"{name} contains pickles, and loading a pickle executes its code: pass "
                "--trust-pickle if you trust its author"
            )
        module, _, function = reference.partition(":")
        loaded: Defender = getattr(import_module(module), function)(Path(name))
        return loaded

    return load_trusted


def _refuse_file(name: str, _options: LoadOptions) -> Defender:
    raise ValueError(f"a model file must be .onnx, or .zip of Stable-Baselines3, got {name}")


def _is_rllib(name: str) -> bool:
    """Whether a folder is an RLlib checkpoint; a run folder is none, whatever else it holds."""
    return Path(name, _RLLIB_CHECKPOINT).is_file() and not runs.is_run(Path(name))


def _is_file(name: str, suffix: str = "") -> bool:
    return name.endswith(suffix) and Path(name).is_file()


LOADERS = (  # the first that fits
    Loader(SCRIPTED.__contains__, lambda name, _: scripted_defender(name)),
    Loader(lambda name: name.startswith(ZOO), lambda name, _: load_run(name)),
    Loader(_is_rllib, _load_pickle("cagepool.integrations.rllib:load_checkpoint")),
    Loader(
        lambda name: Path(name).is_dir(),
        lambda name, options: load_run(name, options.which, network=options.network),
    ),
    Loader(
        lambda name: _is_file(name, ".zip"),
        _load_pickle("cagepool.integrations.sb3_models:load_model"),
    ),
    Loader(lambda name: _is_file(name, ".onnx"), _load_onnx),
    Loader(_is_file, _refuse_file),
    Loader(is_reference, lambda name, _: as_defender(load_object(name, "policy"), name)),
)
