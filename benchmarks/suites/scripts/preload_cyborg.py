"""Import CybORG in the fork server, if it is installed: its processes find it loaded."""

from contextlib import suppress

from cagepool.cyborg import CybORGNotFoundError, locate

with suppress(CybORGNotFoundError, ValueError):
    locate.load()
