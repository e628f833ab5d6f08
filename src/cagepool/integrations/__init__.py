"""Adapters to other reinforcement-learning libraries; each module needs its library."""

from typing import TYPE_CHECKING

from cagepool._lookup import lazy_names

if TYPE_CHECKING:
    from cagepool.integrations.cyborg import CybORGAgent

__all__ = ["CybORGAgent", "pettingzoo", "rllib", "sb3"]

__getattr__ = lazy_names(__name__, {"CybORGAgent": "cagepool.integrations.cyborg"})
