#pragma once
// Opens, escalates and ends red's sessions. Keeps the masks in `Game`, the counts in `TrueState`
// and the session log consistent. Sessions change rarely, so these functions are not inlined.

#include "core/game.hpp"

namespace cagepool {

/// Add a session with these flags: any of kSessionPrivileged, kSessionSeen, kSessionSsh.
void open_session(Slot slot, int host, Session flags);

/// End the user-level sessions that blue has seen (the action Remove).
void remove_sessions(Slot slot, int host);

/// End all sessions but session 0, which is not in the log (the action Restore).
void restore_sessions(Slot slot, int host);

/// Make the host's user-level session number `pick` privileged.
void escalate_session(Slot slot, int host, int pick);

/// Recount the sessions of one host and update masks, counts and access level.
void recount_sessions(Slot slot, int host);

}  // namespace cagepool
