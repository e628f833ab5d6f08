#include "core/sessions.hpp"

#include <algorithm>

namespace cagepool {
namespace {

/// Whether a session on `host` is alive and its flags under `mask` equal `flags`.
template <class Network>
bool matches(typename Network::Session session, int host, int mask, int flags) {
  using Bits = typename Network::Bits;
  return (session & (Bits::kHost | Bits::kAlive | mask)) == (host | Bits::kAlive | flags);
}

Byte saturated(int sessions) { return static_cast<Byte>(std::min(sessions, 255)); }

template <class HostMask>
void set_bit(HostMask& mask, int host, bool value) {
  const auto host_bit = static_cast<HostMask>(HostMask{1} << host);
  mask = static_cast<HostMask>(value ? mask | host_bit : mask & ~host_bit);
}

/// End the sessions among `log` that match.
template <class Network>
void end_sessions(BasicSlot<Network> slot, typename BasicSlot<Network>::Log log, int host, int mask,
                  int flags) {
  for (auto& session : log) {
    if (matches<Network>(session, host, mask, flags))
      session = static_cast<typename Network::Session>(session & ~Network::Bits::kAlive);
  }
  recount_sessions(slot, host);
}

}  // namespace

template <class Network>
void recount_sessions(BasicSlot<Network> slot, int host) {
  using Bits = typename Network::Bits;
  const Network network = slot.network();
  int privileged = host == network.entry() ? 1 : 0;  // session 0
  int seen = 0;
  int unseen = 0;
  for (const auto session : slot.session_log()) {
    privileged += matches<Network>(session, host, Bits::kPrivileged, Bits::kPrivileged);
    seen += matches<Network>(session, host, Bits::kPrivileged | Bits::kSeen, Bits::kSeen);
    unseen += matches<Network>(session, host, Bits::kPrivileged | Bits::kSeen, 0);
  }
  auto& game = slot.game();
  network.count_privileged(game, host, (game.privileged & network.bit(host)) != 0, privileged != 0);
  set_bit(game.privileged, host, privileged != 0);
  set_bit(game.user_seen, host, seen != 0);
  set_bit(game.user_unseen, host, unseen != 0);
  auto& true_state = slot.true_state();
  const auto h = static_cast<std::size_t>(host);
  true_state.privileged[h] = saturated(privileged);
  true_state.user_seen[h] = saturated(seen);
  true_state.user_unseen[h] = saturated(unseen);
  true_state.access[h] = privileged != 0 ? 2 : seen + unseen != 0 ? 1 : 0;
}

template <class Network>
void open_session(BasicSlot<Network> slot, int host, typename Network::Session flags) {
  using Bits = typename Network::Bits;
  const Network network = slot.network();
  auto& game = slot.game();
  ++game.sessions;
  slot.session_log().back() = static_cast<typename Network::Session>(host | Bits::kAlive | flags);
  const bool privileged = (flags & Bits::kPrivileged) != 0;
  const bool seen = (flags & Bits::kSeen) != 0;
  auto& true_state = slot.true_state();
  const auto h = static_cast<std::size_t>(host);
  if (privileged) {
    network.count_privileged(game, host, (game.privileged & network.bit(host)) != 0, true);
  }
  (privileged ? game.privileged : seen ? game.user_seen : game.user_unseen) |= network.bit(host);
  Byte& count = (privileged ? true_state.privileged
                 : seen     ? true_state.user_seen
                            : true_state.user_unseen)[h];
  count = saturated(count + 1);
  true_state.access[h] = std::max<Byte>(true_state.access[h], privileged ? 2 : 1);
}

template <class Network>
void remove_sessions(BasicSlot<Network> slot, int host, std::size_t spared) {
  using Bits = typename Network::Bits;
  const auto log = slot.session_log();
  end_sessions(slot, log.first(log.size() - spared), host, Bits::kPrivileged | Bits::kSeen,
               Bits::kSeen);
}

template <class Network>
void restore_sessions(BasicSlot<Network> slot, int host) {
  end_sessions(slot, slot.session_log(), host, 0, 0);
}

template <class Network>
void escalate_session(BasicSlot<Network> slot, int host, int pick) {
  using Bits = typename Network::Bits;
  for (auto& session : slot.session_log()) {
    if (matches<Network>(session, host, Bits::kPrivileged, 0) && pick-- == 0)
      session |= Bits::kPrivileged;
  }
  recount_sessions(slot, host);
}

template void open_session(BasicSlot<Cage2>, int, Session);
template void remove_sessions(BasicSlot<Cage2>, int, std::size_t);
template void restore_sessions(BasicSlot<Cage2>, int);
template void escalate_session(BasicSlot<Cage2>, int, int);
template void recount_sessions(BasicSlot<Cage2>, int);
template void open_session(BasicSlot<TableNetwork>, int, WideSession);
template void remove_sessions(BasicSlot<TableNetwork>, int, std::size_t);
template void restore_sessions(BasicSlot<TableNetwork>, int);
template void escalate_session(BasicSlot<TableNetwork>, int, int);
template void recount_sessions(BasicSlot<TableNetwork>, int);

}  // namespace cagepool
