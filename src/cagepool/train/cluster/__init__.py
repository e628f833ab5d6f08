"""Ray: rollouts and whole trainings on other processes and machines (docs/ray.md)."""

from cagepool.train.cluster.connection import connected
from cagepool.train.cluster.crew import RayCrew

__all__ = ["RayCrew", "connected"]
