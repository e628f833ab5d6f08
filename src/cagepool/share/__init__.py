"""Pass on what was trained: folders to share, and datasets for offline reinforcement learning."""
