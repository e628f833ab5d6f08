"""Imported by the process that forks others: these find CybORG loaded, if it is there."""

from contextlib import suppress

from cagepool.cyborg import CybORGNotFoundError, locate

with suppress(CybORGNotFoundError, ValueError):
    locate.load()
