"""Training: PPO, evaluation, early stopping and the run that writes a run folder."""
