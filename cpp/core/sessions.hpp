#pragma once
// Opens, escalates and ends red's sessions. Keeps the masks of the game, the counts of the true
// state and the session log consistent. Sessions change rarely, so these functions are not inlined.

#include "core/scenarios.hpp"

namespace cagepool {

/// Add a session.
///
/// @param flags Any of kPrivileged, kSeen and kSsh of `SessionBits`; in logs that have room for it,
///     also the exploit that opened the session.
template <class Scenario>
void open_session(BasicSlot<Scenario> slot, int host, typename Scenario::Session flags);

/// End the user-level sessions that blue has seen (the action Remove).
///
/// @param spared Number of sessions, the last ones of the log, that stay: red opened them earlier
///     in this step.
template <class Scenario>
void remove_sessions(BasicSlot<Scenario> slot, int host, std::size_t spared);

/// End all sessions but session 0, which is not in the log (the action Restore).
template <class Scenario>
void restore_sessions(BasicSlot<Scenario> slot, int host);

/// Make the host's user-level session number `pick` privileged.
template <class Scenario>
void escalate_session(BasicSlot<Scenario> slot, int host, int pick);

/// Recount the sessions of one host and update masks, counts and access level.
template <class Scenario>
void recount_sessions(BasicSlot<Scenario> slot, int host);

}  // namespace cagepool
