"""Flags and words about Ray that commands share."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from cagepool import _optional
from cagepool.train.config import EnvConfig


@contextmanager
def ray_connection(env: EnvConfig, address: str | None) -> Iterator[None]:
    """Stands around what is trained; a cluster is there if the settings ask for one.

    Raises:
        ValueError: there is none at that address, or it is of no use.
    """
    if env.backend != "ray":
        if address is not None:
            raise ValueError(f"--ray-address needs --backend ray, got {env.backend}")
        yield
        return
    with _optional.needed("backend ray", "ray", "ray"):
        from cagepool.train.ray import connected  # noqa: PLC0415 - takes seconds to load
    with connected(address or os.environ.get("RAY_ADDRESS"), env.ray_actors):
        yield
