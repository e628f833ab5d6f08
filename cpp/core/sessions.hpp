#pragma once
// Red's sessions: opening, escalating and losing them, kept alike in the masks, the counts and the
// log. Rare beside steps, so none of this is inlined there.

#include "core/game.hpp"

namespace cagepool {

/// Add a session of the given kind: any of kSessionPrivileged, kSessionSeen, kSessionSsh.
void open_session(Slot slot, int host, Session kind);

/// End the user-level sessions that blue has seen.
void remove_sessions(Slot slot, int host);

/// End all sessions but session 0, which is not in the log.
void restore_sessions(Slot slot, int host);

/// Make session number `pick` of the host's user-level sessions a privileged one.
void escalate_session(Slot slot, int host, int pick);

}  // namespace cagepool
