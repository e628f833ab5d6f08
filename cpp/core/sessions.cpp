#include "core/sessions.hpp"

#include <algorithm>

namespace cagepool {
namespace {

/// Whether a session on `host` is alive and its flags under `mask` equal `flags`.
template <class Scenario>
bool matches(typename Scenario::Session session, int host, int mask, int flags) {
  using Bits = typename Scenario::Bits;
  return (session & (Bits::kHost | Bits::kAlive | mask)) == (host | Bits::kAlive | flags);
}

Byte saturated(int sessions) { return static_cast<Byte>(std::min(sessions, 255)); }

template <class HostMask>
void set_bit(HostMask& mask, int host, bool value) {
  const auto host_bit = static_cast<HostMask>(HostMask{1} << host);
  mask = static_cast<HostMask>(value ? mask | host_bit : mask & ~host_bit);
}

/// End the sessions among `log` that match.
template <class Scenario>
void end_sessions(BasicSlot<Scenario> slot, typename BasicSlot<Scenario>::Log log, int host,
                  int mask, int flags) {
  for (auto& session : log) {
    if (matches<Scenario>(session, host, mask, flags))
      session = static_cast<typename Scenario::Session>(session & ~Scenario::Bits::kAlive);
  }
  recount_sessions(slot, host);
}

}  // namespace

template <class Scenario>
void recount_sessions(BasicSlot<Scenario> slot, int host) {
  using Bits = typename Scenario::Bits;
  const Scenario scenario = slot.scenario();
  int privileged = host == scenario.entry() ? 1 : 0;  // session 0
  int seen = 0;
  int unseen = 0;
  for (const auto session : slot.session_log()) {
    privileged += matches<Scenario>(session, host, Bits::kPrivileged, Bits::kPrivileged);
    seen += matches<Scenario>(session, host, Bits::kPrivileged | Bits::kSeen, Bits::kSeen);
    unseen += matches<Scenario>(session, host, Bits::kPrivileged | Bits::kSeen, 0);
  }
  auto& game = slot.game();
  scenario.count_privileged(game, host, (game.privileged & scenario.bit(host)) != 0,
                            privileged != 0);
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

template <class Scenario>
void open_session(BasicSlot<Scenario> slot, int host, typename Scenario::Session flags) {
  using Bits = typename Scenario::Bits;
  const Scenario scenario = slot.scenario();
  auto& game = slot.game();
  ++game.sessions;
  slot.session_log().back() = static_cast<typename Scenario::Session>(host | Bits::kAlive | flags);
  const bool privileged = (flags & Bits::kPrivileged) != 0;
  const bool seen = (flags & Bits::kSeen) != 0;
  auto& true_state = slot.true_state();
  const auto h = static_cast<std::size_t>(host);
  if (privileged) {
    scenario.count_privileged(game, host, (game.privileged & scenario.bit(host)) != 0, true);
  }
  (privileged ? game.privileged : seen ? game.user_seen : game.user_unseen) |= scenario.bit(host);
  Byte& count = (privileged ? true_state.privileged
                 : seen     ? true_state.user_seen
                            : true_state.user_unseen)[h];
  count = saturated(count + 1);
  true_state.access[h] = std::max<Byte>(true_state.access[h], privileged ? 2 : 1);
}

template <class Scenario>
void remove_sessions(BasicSlot<Scenario> slot, int host, std::size_t spared) {
  using Bits = typename Scenario::Bits;
  const auto log = slot.session_log();
  end_sessions(slot, log.first(log.size() - spared), host, Bits::kPrivileged | Bits::kSeen,
               Bits::kSeen);
}

template <class Scenario>
void restore_sessions(BasicSlot<Scenario> slot, int host) {
  end_sessions(slot, slot.session_log(), host, 0, 0);
}

template <class Scenario>
void escalate_session(BasicSlot<Scenario> slot, int host, int pick) {
  using Bits = typename Scenario::Bits;
  for (auto& session : slot.session_log()) {
    if (matches<Scenario>(session, host, Bits::kPrivileged, 0) && pick-- == 0)
      session |= Bits::kPrivileged;
  }
  recount_sessions(slot, host);
}

template void open_session(BasicSlot<CompiledScenario>, int, Session);
template void remove_sessions(BasicSlot<CompiledScenario>, int, std::size_t);
template void restore_sessions(BasicSlot<CompiledScenario>, int);
template void escalate_session(BasicSlot<CompiledScenario>, int, int);
template void recount_sessions(BasicSlot<CompiledScenario>, int);
template void open_session(BasicSlot<TableScenario>, int, WideSession);
template void remove_sessions(BasicSlot<TableScenario>, int, std::size_t);
template void restore_sessions(BasicSlot<TableScenario>, int);
template void escalate_session(BasicSlot<TableScenario>, int, int);
template void recount_sessions(BasicSlot<TableScenario>, int);

}  // namespace cagepool
