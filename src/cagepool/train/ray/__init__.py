"""Ray: rollouts and whole trainings on other processes and machines (docs/ray.md)."""

from cagepool.train.ray.connection import connected
from cagepool.train.ray.crew import RayCrew

__all__ = ["RayCrew", "connected"]
