#include "core/sessions.hpp"

#include <algorithm>

namespace cagepool {
namespace {

/// Whether a session lives on `host` and has the `wanted` ones of the `asked` marks.
bool matches(Session session, int host, int asked, int wanted) {
  return (session & (kSessionHost | kSessionAlive | asked)) == (host | kSessionAlive | wanted);
}

Byte counted(int sessions) { return static_cast<Byte>(std::min(sessions, 255)); }

void set(Mask& mask, int host, bool held) {
  mask = static_cast<Mask>(held ? mask | bit(host) : mask & ~bit(host));
}

/// Count the sessions of one host anew, and set masks and access level by them.
void recount(Slot slot, int host) {
  int privileged = host == kUser0 ? 1 : 0;  // session 0
  int seen = 0;
  int unseen = 0;
  for (const Session session : slot.log()) {
    privileged += matches(session, host, kSessionPrivileged, kSessionPrivileged);
    seen += matches(session, host, kSessionPrivileged | kSessionSeen, kSessionSeen);
    unseen += matches(session, host, kSessionPrivileged | kSessionSeen, 0);
  }
  Game& game = slot.game();
  set(game.privileged, host, privileged != 0);
  set(game.user_seen, host, seen != 0);
  set(game.user_unseen, host, unseen != 0);
  TrueState& truth = slot.truth();
  const auto h = static_cast<std::size_t>(host);
  truth.privileged[h] = counted(privileged);
  truth.user_seen[h] = counted(seen);
  truth.user_unseen[h] = counted(unseen);
  truth.access[h] = privileged != 0 ? 2 : seen + unseen != 0 ? 1 : 0;
}

void end_sessions(Slot slot, int host, int asked, int wanted) {
  for (Session& session : slot.log()) {
    if (matches(session, host, asked, wanted))
      session = static_cast<Session>(session & ~kSessionAlive);
  }
  recount(slot, host);
}

}  // namespace

void open_session(Slot slot, int host, Session kind) {
  ++slot.game().sessions;
  slot.log().back() = static_cast<Session>(host | kSessionAlive | kind);
  Game& game = slot.game();
  TrueState& truth = slot.truth();
  const auto h = static_cast<std::size_t>(host);
  const bool privileged = (kind & kSessionPrivileged) != 0;
  const bool seen = (kind & kSessionSeen) != 0;
  (privileged ? game.privileged : seen ? game.user_seen : game.user_unseen) |= bit(host);
  Byte& count = (privileged ? truth.privileged : seen ? truth.user_seen : truth.user_unseen)[h];
  count = counted(count + 1);
  truth.access[h] = std::max<Byte>(truth.access[h], privileged ? 2 : 1);
}

void remove_sessions(Slot slot, int host) {
  end_sessions(slot, host, kSessionPrivileged | kSessionSeen, kSessionSeen);
}

void restore_sessions(Slot slot, int host) { end_sessions(slot, host, 0, 0); }

void escalate_session(Slot slot, int host, int pick) {
  for (Session& session : slot.log()) {
    if (matches(session, host, kSessionPrivileged, 0) && pick-- == 0) session |= kSessionPrivileged;
  }
  recount(slot, host);
}

}  // namespace cagepool
