"""Imported by the process that forks others: these find CybORG loaded, if it is there."""

from contextlib import suppress

from cagepool.envs.cyborg import CybORGNotFoundError, checkout

with suppress(CybORGNotFoundError, ValueError):
    checkout.load()
