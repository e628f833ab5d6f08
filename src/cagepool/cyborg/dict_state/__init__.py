"""Dictionary form of the true state, with CybORG's keys and values."""

from cagepool.cyborg.dict_state.export import RedSession, session_log, true_state_dict

__all__ = ["RedSession", "session_log", "true_state_dict"]
