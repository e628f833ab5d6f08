#pragma once
// One step of a game: blue, green and red act, then the reward and blue's observation follow
// (docs/rules.md, section 4).

#include "core/activity.hpp"
#include "core/blue.hpp"
#include "core/red.hpp"
#include "core/red_actions.hpp"

namespace cagepool {

template <class Network>
struct BasicStepResult {
  typename Network::Moves moves;
  int reward_tenths;
  typename Network::Table observation;  // bit k is value k
};
using StepResult = BasicStepResult<Cage2>;

/// Pack the moves of a step in a register; eight stores of bytes and a reload of the word would
/// stall.
inline void pack_moves(int action, Success blue, RedAction red, RedOutcome outcome, int green_host,
                       int /*decoy_pick*/, Moves& moves) {
  const auto byte = [](auto value, int offset) {
    return std::uint32_t{static_cast<std::uint8_t>(value)} << (8 * offset);
  };
  const std::uint32_t actions =
      byte(action, 0) | byte(blue, 1) | byte(red.kind, 2) | byte(red.target, 3);
  // A word by itself: most of red's actions end in constants, which then take one register.
  const std::uint32_t outcomes =
      byte(outcome.success, 0) | byte(outcome.exploit, 1) | byte(outcome.detected, 2);
  const std::uint64_t green = byte(green_host, 3);
  moves = std::bit_cast<Moves>(green << 32 | std::uint64_t{outcomes} << 32 | actions);
}
inline void pack_moves(int action, Success blue, RedAction red, RedOutcome outcome, int green_host,
                       int decoy_pick, WideMoves& moves) {
  moves = {.blue_action = static_cast<std::uint16_t>(action),
           .blue_success = blue,
           .red_kind = red.kind,
           .red_target = red.target,
           .red_success = outcome.success,
           .exploit = outcome.exploit,
           .detected = outcome.detected,
           .green_host = static_cast<std::int8_t>(green_host),
           .decoy_pick = static_cast<std::int8_t>(decoy_pick)};
}

inline void add_activities(std::uint64_t& table, std::uint64_t activities) { table |= activities; }
inline void add_activities(WideTable& table, const WideTable& activities) {
  for (std::size_t i = 0; i < table.size(); ++i) table[i] |= activities[i];
}

/// One step of one game: the turns of the agents, and what follows from them.
template <class Network, class Draws>
class StepPlay {
 public:
  StepPlay(BasicSlot<Network> slot, int action, RedAction given, const Draws& draws)
      : slot_(slot),
        network_(slot.network()),
        draws_(draws),
        given_(given),
        action_(action),
        sessions_(slot.game().sessions) {}

  template <class OnFix>
  [[gnu::always_inline]] BasicStepResult<Network> play(const OnFix& on_fix) {
    const typename Network::Blue& blue = network_.blue_action(static_cast<std::size_t>(action_));
    if (network_.blue_after_green()) play_green();
    if (network_.blue_after_red()) play_red();
    if constexpr (Network::kIsTable) {
      play_blue_of_table(blue, on_fix);
    } else {
      play_blue(blue, on_fix);
    }
    if (!network_.blue_after_green()) play_green();
    if (!network_.blue_after_red()) play_red();
    return finish(blue);
  }

 private:
  template <class OnFix>
  [[gnu::always_inline]] void play_blue(const typename Network::Blue& blue, const OnFix& on_fix) {
    finds_malware_ = (slot_.game().malware & blue.analyse_host) != 0;
    const std::size_t opened =
        network_.blue_after_red() ? std::size_t{slot_.game().sessions} - sessions_ : 0;
    placed_decoy_ = play_blue_action(slot_, blue, opened, on_fix);
  }

  template <class OnFix>
  [[gnu::always_inline]] void play_blue_of_table(typename Network::Blue blue, const OnFix& on_fix) {
    if (blue.kind == BlueKind::kMisinform) [[unlikely]]
      decoy_pick_ = draw_misinform(slot_, blue, draws_);
    play_blue(blue, on_fix);
    if (blue.restore_host != 0 && network_.has_agent(blue.host)) {  // Q33: events are lost
      if (network_.blue_after_green() && green_host_ == int{blue.host})
        green_events_ = HostEvents::kNone;
      if (network_.blue_after_red() && red_.target == int{blue.host})
        outcome_.events = HostEvents::kNone;
    }
  }

  [[gnu::always_inline]] void play_green() {
    if (!slot_.game().green) return;
    green_host_ = draws_.green_host(network_);
    if (green_host_ < 0) return;
    const auto host = static_cast<std::size_t>(green_host_);
    green_events_ = scan_events(slot_, host);
    if constexpr (Network::kIsTable) green_ports_ = listening_ports(slot_, host);
  }

  [[gnu::always_inline]] void play_red() {
    auto& game = slot_.game();
    red_ = choose_red_action(network_, game, given_, draws_);
    outcome_ = play_red_action(slot_, red_, draws_);
    game.last_success = outcome_.success;
  }

  unsigned activity_on(const typename Network::Blue& blue, int host, HostEvents by_green,
                       HostEvents by_red) const {
    const bool decoy = placed_decoy_ & (int{blue.host} == host);
    if constexpr (Network::kIsTable) {
      const bool both = by_green != HostEvents::kNone && by_red != HostEvents::kNone;
      if (decoy && both && (outcome_.port & ~green_ports_) != 0) [[unlikely]]
        return activity(by_green, by_red, decoy, true);
    }
    return kActivityTable[static_cast<std::size_t>(by_green)][static_cast<std::size_t>(by_red)]
                         [decoy];
  }

  [[gnu::always_inline]] BasicStepResult<Network> finish(const typename Network::Blue& blue) {
    typename Network::Table activities{};
    if (green_events_ != HostEvents::kNone && network_.is_monitored(green_host_)) [[unlikely]] {
      const HostEvents by_red = red_.target == green_host_ ? outcome_.events : HostEvents::kNone;
      record_activity(slot_, green_host_, activity_on(blue, green_host_, green_events_, by_red),
                      activities);
    }
    if (outcome_.events != HostEvents::kNone && is_alone_on(red_.target)) {
      const unsigned activity = activity_on(blue, red_.target, HostEvents::kNone, outcome_.events);
      record_activity(slot_, red_.target, activity, activities);
    }
    if (finds_malware_) [[unlikely]]
      set_compromised(slot_, blue.host, kPrivilegedAccess);

    BasicStepResult<Network> result;
    const auto success =
        static_cast<Success>(placed_decoy_ | static_cast<int>(blue.default_success));
    pack_moves(action_, success, red_, outcome_, green_host_, decoy_pick_, result.moves);
    const auto& game = slot_.game();
    result.reward_tenths = -network_.penalty_tenths(game) - blue.cost;
    result.observation = game.blue_table;
    add_activities(result.observation, activities);
    return result;
  }

  /// Whether red's events on a host are reported by themselves, not with those of green.
  bool is_alone_on(int host) const {
    if constexpr (Network::kIsTable) {
      return network_.is_monitored(host) &&
             (host != green_host_ || green_events_ == HostEvents::kNone);
    }
    return host != green_host_;
  }

  BasicSlot<Network> slot_;
  Network network_;
  const Draws& draws_;
  RedAction given_;
  int action_;
  std::size_t sessions_;  // before the step
  bool finds_malware_ = false;
  bool placed_decoy_ = false;
  int decoy_pick_ = -1;
  int green_host_ = -1;
  HostEvents green_events_ = HostEvents::kNone;
  Ports green_ports_ = 0;  // that green found
  RedAction red_;
  RedOutcome outcome_;
};

/// Play one step.
///
/// @param given Red's action, if the caller plays red.
/// @param draws Source of the random draws: RandomDraws or RecordedDraws.
/// @param on_fix Called with the game before a Remove or Restore and with its host.
template <class Network, class Draws, class OnFix>
inline BasicStepResult<Network> play_step(BasicSlot<Network> slot, int action, RedAction given,
                                          const Draws& draws, const OnFix& on_fix) {
  return StepPlay<Network, Draws>(slot, action, given, draws).play(on_fix);
}

}  // namespace cagepool
