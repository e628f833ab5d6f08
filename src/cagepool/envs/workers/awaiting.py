"""Waiting for workers in asyncio."""

import asyncio
from contextlib import suppress

from cagepool.envs.workers.pool import Pool


async def readable(pool: Pool) -> None:
    """Wait until a worker says something, or it is time to look at them."""
    loop, said = asyncio.get_running_loop(), asyncio.Event()
    descriptor = pool.fileno()
    loop.add_reader(descriptor, said.set)
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(said.wait(), pool.config.tick_s)
    finally:
        loop.remove_reader(descriptor)
