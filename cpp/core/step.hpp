#pragma once
// One step of a game: blue, green and red act, then the reward and blue's observation follow
// (docs/rules.md, section 4).

#include "core/activity.hpp"
#include "core/blue.hpp"
#include "core/red.hpp"
#include "core/red_actions.hpp"

namespace cagepool {

template <class Scenario>
struct BasicStepResult {
  Outcomes outcomes;
  int reward_tenths;
  typename Scenario::Table observation;  // bit k is value k
};
using StepResult = BasicStepResult<CompiledScenario>;

/// Pack the outcomes of a step in a register; eight stores of bytes and a reload of the word would
/// stall.
inline Outcomes pack_outcomes(Success blue, RedAction red, RedOutcome outcome, int green_host,
                              int decoy_pick) {
  const auto byte = [](auto value, int offset) {
    return std::uint32_t{static_cast<std::uint8_t>(value)} << (8 * offset);
  };
  const std::uint32_t actions =
      byte(blue, 0) | byte(red.kind, 1) | byte(red.target, 2) | byte(decoy_pick, 3);
  // A word by itself: most of red's actions end in constants, which then take one register.
  const std::uint32_t outcomes =
      byte(outcome.success, 0) | byte(outcome.exploit, 1) | byte(outcome.detected, 2);
  const std::uint64_t green = byte(green_host, 3);
  return std::bit_cast<Outcomes>(green << 32 | std::uint64_t{outcomes} << 32 | actions);
}

inline void add_activities(std::uint64_t& table, std::uint64_t activities) { table |= activities; }
inline void add_activities(WideTable& table, const WideTable& activities) {
  for (std::size_t i = 0; i < table.size(); ++i) table[i] |= activities[i];
}

/// One step of one game: the turns of the agents, and what follows from them.
template <class Scenario, class Draws>
class StepPlay {
 public:
  StepPlay(BasicSlot<Scenario> slot, int action, RedAction given, const Draws& draws)
      : slot_(slot),
        scenario_(slot.scenario()),
        draws_(draws),
        given_(given),
        action_(action),
        sessions_(slot.game().sessions) {}

  template <class OnFix>
  [[gnu::always_inline]] BasicStepResult<Scenario> play(const OnFix& on_fix) {
    const typename Scenario::Blue& blue = scenario_.blue_action(static_cast<std::size_t>(action_));
    if (scenario_.blue_after_green()) play_green();
    if (scenario_.blue_after_red()) play_red();
    if constexpr (Scenario::kIsTable) {
      play_blue_of_table(blue, on_fix);
    } else {
      play_blue(blue, on_fix);
    }
    if (!scenario_.blue_after_green()) play_green();
    if (!scenario_.blue_after_red()) play_red();
    return finish(blue);
  }

 private:
  template <class OnFix>
  [[gnu::always_inline]] void play_blue(const typename Scenario::Blue& blue, const OnFix& on_fix) {
    finds_malware_ = (slot_.game().malware & blue.analyse_host) != 0;
    const std::size_t opened =
        scenario_.blue_after_red() ? std::size_t{slot_.game().sessions} - sessions_ : 0;
    placed_decoy_ = play_blue_action(slot_, blue, opened, on_fix);
  }

  template <class OnFix>
  [[gnu::always_inline]] void play_blue_of_table(typename Scenario::Blue blue,
                                                 const OnFix& on_fix) {
    if (blue.kind == BlueKind::kMisinform) [[unlikely]]
      decoy_pick_ = draw_misinform(slot_, blue, draws_);
    play_blue(blue, on_fix);
    if (blue.restore_host != 0 && scenario_.has_agent(blue.host)) {  // Q33: events are lost
      if (scenario_.blue_after_green() && green_host_ == int{blue.host})
        green_events_ = HostEvents::kNone;
      if (scenario_.blue_after_red() && red_.target == int{blue.host})
        outcome_.events = HostEvents::kNone;
    }
  }

  [[gnu::always_inline]] void play_green() {
    if (!slot_.game().green) return;
    green_host_ = draws_.green_host(scenario_);
    if (green_host_ < 0) return;
    const auto host = static_cast<std::size_t>(green_host_);
    green_events_ = scan_events(slot_, host);
    if constexpr (Scenario::kIsTable) green_ports_ = listening_ports(slot_, host);
  }

  [[gnu::always_inline]] void play_red() {
    auto& game = slot_.game();
    red_ = choose_red_action(scenario_, game, given_, draws_);
    outcome_ = play_red_action(slot_, red_, draws_);
    game.last_success = outcome_.success;
  }

  unsigned activity_on(const typename Scenario::Blue& blue, int host, HostEvents by_green,
                       HostEvents by_red) const {
    const bool decoy = placed_decoy_ & (int{blue.host} == host);
    if constexpr (Scenario::kIsTable) {
      const bool both = by_green != HostEvents::kNone && by_red != HostEvents::kNone;
      if (decoy && both && (outcome_.port & ~green_ports_) != 0) [[unlikely]]
        return activity(by_green, by_red, decoy, true);
    }
    return kActivityTable[static_cast<std::size_t>(by_green)][static_cast<std::size_t>(by_red)]
                         [decoy];
  }

  [[gnu::always_inline]] BasicStepResult<Scenario> finish(const typename Scenario::Blue& blue) {
    typename Scenario::Table activities{};
    if (green_events_ != HostEvents::kNone && scenario_.is_monitored(green_host_)) [[unlikely]] {
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

    BasicStepResult<Scenario> result;
    const auto success =
        static_cast<Success>(placed_decoy_ | static_cast<int>(blue.default_success));
    result.outcomes = pack_outcomes(success, red_, outcome_, green_host_, decoy_pick_);
    const auto& game = slot_.game();
    result.reward_tenths = -scenario_.penalty_tenths(game) - blue.cost;
    result.observation = game.blue_table;
    add_activities(result.observation, activities);
    return result;
  }

  /// Whether red's events on a host are reported by themselves, not with those of green.
  bool is_alone_on(int host) const {
    if constexpr (Scenario::kIsTable) {
      return scenario_.is_monitored(host) &&
             (host != green_host_ || green_events_ == HostEvents::kNone);
    }
    return host != green_host_;
  }

  BasicSlot<Scenario> slot_;
  Scenario scenario_;
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
template <class Scenario, class Draws, class OnFix>
inline BasicStepResult<Scenario> play_step(BasicSlot<Scenario> slot, int action, RedAction given,
                                           const Draws& draws, const OnFix& on_fix) {
  return StepPlay<Scenario, Draws>(slot, action, given, draws).play(on_fix);
}

}  // namespace cagepool
