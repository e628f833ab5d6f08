"""Flags and words about Ray that commands share."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from cagepool import _optional
from cagepool.train.config import TrainConfig


@contextmanager
def ray_connection(config: TrainConfig, address: str | None) -> Iterator[None]:
    """Stands around what is trained; a cluster is there if the settings ask for one.

    Raises:
        ValueError: there is none at that address, or it is of no use.
    """
    if config.backend != "ray":
        if address is not None:
            raise ValueError(f"ray_address needs backend ray, got {config.backend}")
        yield
        return
    with _optional.needed("backend ray", "ray", "ray"):
        from cagepool.train.ray import connected  # noqa: PLC0415 - takes seconds to load
    with connected(address or os.environ.get("RAY_ADDRESS"), config.ray_actors):
        yield
