"""Dictionary form of the true state, with the keys and values that CybORG uses."""
