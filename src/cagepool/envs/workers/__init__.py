"""Any Gymnasium environment in worker processes, over shared memory."""

from cagepool.envs.workers.env import WorkerVectorEnv

__all__ = ["WorkerVectorEnv"]
