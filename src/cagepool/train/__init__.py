"""Train a defender with PPO."""
