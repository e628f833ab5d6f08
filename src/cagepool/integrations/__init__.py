"""Adapters to other reinforcement-learning libraries; each module needs its library."""
