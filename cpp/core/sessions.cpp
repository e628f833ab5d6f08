#include "core/sessions.hpp"

#include <algorithm>

namespace cagepool {
namespace {

/// Whether a session on `host` is alive and its flags under `mask` equal `flags`.
bool matches(Session session, int host, int mask, int flags) {
  return (session & (kSessionHost | kSessionAlive | mask)) == (host | kSessionAlive | flags);
}

Byte saturated(int sessions) { return static_cast<Byte>(std::min(sessions, 255)); }

void set_bit(Mask& mask, int host, bool value) {
  mask = static_cast<Mask>(value ? mask | bit(host) : mask & ~bit(host));
}

void end_sessions(Slot slot, int host, int mask, int flags) {
  for (Session& session : slot.session_log()) {
    if (matches(session, host, mask, flags))
      session = static_cast<Session>(session & ~kSessionAlive);
  }
  recount_sessions(slot, host);
}

}  // namespace

void recount_sessions(Slot slot, int host) {
  int privileged = host == kUser0 ? 1 : 0;  // session 0
  int seen = 0;
  int unseen = 0;
  for (const Session session : slot.session_log()) {
    privileged += matches(session, host, kSessionPrivileged, kSessionPrivileged);
    seen += matches(session, host, kSessionPrivileged | kSessionSeen, kSessionSeen);
    unseen += matches(session, host, kSessionPrivileged | kSessionSeen, 0);
  }
  Game& game = slot.game();
  set_bit(game.privileged, host, privileged != 0);
  set_bit(game.user_seen, host, seen != 0);
  set_bit(game.user_unseen, host, unseen != 0);
  TrueState& true_state = slot.true_state();
  const auto h = static_cast<std::size_t>(host);
  true_state.privileged[h] = saturated(privileged);
  true_state.user_seen[h] = saturated(seen);
  true_state.user_unseen[h] = saturated(unseen);
  true_state.access[h] = privileged != 0 ? 2 : seen + unseen != 0 ? 1 : 0;
}

void open_session(Slot slot, int host, Session flags) {
  ++slot.game().sessions;
  slot.session_log().back() = static_cast<Session>(host | kSessionAlive | flags);
  Game& game = slot.game();
  TrueState& true_state = slot.true_state();
  const auto h = static_cast<std::size_t>(host);
  const bool privileged = (flags & kSessionPrivileged) != 0;
  const bool seen = (flags & kSessionSeen) != 0;
  (privileged ? game.privileged : seen ? game.user_seen : game.user_unseen) |= bit(host);
  Byte& count = (privileged ? true_state.privileged
                 : seen     ? true_state.user_seen
                            : true_state.user_unseen)[h];
  count = saturated(count + 1);
  true_state.access[h] = std::max<Byte>(true_state.access[h], privileged ? 2 : 1);
}

void remove_sessions(Slot slot, int host) {
  end_sessions(slot, host, kSessionPrivileged | kSessionSeen, kSessionSeen);
}

void restore_sessions(Slot slot, int host) { end_sessions(slot, host, 0, 0); }

void escalate_session(Slot slot, int host, int pick) {
  for (Session& session : slot.session_log()) {
    if (matches(session, host, kSessionPrivileged, 0) && pick-- == 0) session |= kSessionPrivileged;
  }
  recount_sessions(slot, host);
}

}  // namespace cagepool
