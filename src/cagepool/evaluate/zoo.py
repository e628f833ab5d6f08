"""The zoo: trained policies that come with the package, such as `zoo:best-2.1`."""

from pathlib import Path

from cagepool._lookup import suggestion

PREFIX = "zoo:"
_RUNS = Path(__file__).parents[1] / "zoo"  # run folders


def zoo_names() -> list[str]:
    """Names of all policies in the zoo, with the prefix."""
    return sorted(f"{PREFIX}{folder.name}" for folder in _RUNS.iterdir() if folder.is_dir())


def zoo_folder(name: str) -> Path:
    """Run folder of a policy in the zoo. It is part of the package: do not write to it.

    Raises:
        ValueError: no policy of the zoo has that name.
    """
    names = zoo_names()
    if name not in names:
        known = f"a policy of the zoo must be one of {', '.join(names)}"
        raise ValueError(f"{known}; got {name!r}{suggestion(name, names)}")
    return _RUNS / name.removeprefix(PREFIX)
