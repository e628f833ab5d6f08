"""Dictionary form of the true state, with CybORG's keys and values."""

from cagepool.cyborg.dict_state.export import true_state_dict

__all__ = ["true_state_dict"]
