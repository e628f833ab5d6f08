#pragma once
// Red's sessions: opening, escalating and losing them, kept alike in the masks, the counts and the log.

#include <limits>

#include "game.hpp"

namespace cagepool {

/// Sessions on `host` that a log entry must match in `mask` to equal `wanted`.
inline bool is_on(Session session, int host, Session mask, Session wanted) {
  return (session & (kSessionHost | kSessionAlive | mask)) == (host | kSessionAlive | wanted);
}

/// Count the sessions of one host anew, and set the masks and the access level by them.
inline void recount(const Table& table, int host) {
  Game& game = table.game;
  TrueState& truth = table.truth;
  const auto h = static_cast<std::size_t>(host);
  int privileged = host == kUser0 ? 1 : 0;  // session 0
  int seen = 0;
  int unseen = 0;
  for (const Session session : table.log.first(game.sessions - 1u)) {
    if (!is_on(session, host, 0, 0)) continue;
    if (session & kSessionPrivileged) {
      ++privileged;
    } else if (session & kSessionSeen) {
      ++seen;
    } else {
      ++unseen;
    }
  }
  const auto count = [](int sessions) { return static_cast<std::uint8_t>(std::min(sessions, 255)); };
  truth.privileged[h] = count(privileged);
  truth.user_seen[h] = count(seen);
  truth.user_unseen[h] = count(unseen);
  truth.access[h] = privileged != 0 ? 2 : seen + unseen != 0 ? 1 : 0;
  const auto set = [host](Mask& mask, bool held) {
    mask = static_cast<Mask>(held ? mask | bit(host) : mask & ~bit(host));
  };
  set(game.privileged, privileged != 0);
  set(game.user_seen, seen != 0);
  set(game.user_unseen, unseen != 0);
}

inline void open_session(const Table& table, int host, Session kind) {
  Game& game = table.game;
  TrueState& truth = table.truth;
  const auto h = static_cast<std::size_t>(host);
  table.log[game.sessions - 1u] = static_cast<Session>(host | kSessionAlive | kind);
  ++game.sessions;
  const bool privileged = (kind & kSessionPrivileged) != 0;
  const bool seen = (kind & kSessionSeen) != 0;
  Mask& mask = privileged ? game.privileged : seen ? game.user_seen : game.user_unseen;
  std::uint8_t& count = privileged ? truth.privileged[h] : seen ? truth.user_seen[h] : truth.user_unseen[h];
  mask |= bit(host);
  count = static_cast<std::uint8_t>(count + (count != std::numeric_limits<std::uint8_t>::max()));
  truth.access[h] = std::max<std::uint8_t>(truth.access[h], privileged ? 2 : 1);
}

/// End the sessions of `host` that match; session 0 is not in the log and so never ends.
inline void close_sessions(const Table& table, int host, Session mask, Session wanted) {
  for (Session& session : table.log.first(table.game.sessions - 1u)) {
    if (is_on(session, host, mask, wanted)) session &= static_cast<Session>(~kSessionAlive);
  }
  recount(table, host);
}

/// Make session number `pick` of the host's user-level sessions a privileged one.
inline void escalate_session(const Table& table, int host, int pick) {
  for (Session& session : table.log.first(table.game.sessions - 1u)) {
    if (is_on(session, host, kSessionPrivileged, 0) && pick-- == 0) session |= kSessionPrivileged;
  }
  recount(table, host);
}

}  // namespace cagepool
