"""Dictionary form of the true state, with the keys and values that CybORG uses."""

from cagepool.cyborg.dict_state.export import true_state_dict

__all__ = ["true_state_dict"]
