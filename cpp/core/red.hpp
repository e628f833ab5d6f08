#pragma once
// Decisions of the red agents (docs/rules.md, section 6). An agent updates its memory by the
// success of its last action, then chooses the next. To add an agent: a value of `Red`, its state
// in `Game`, a function here and a case of `choose_red_action`.

#include "core/scenarios.hpp"

namespace cagepool {

/// One position of B_lineAgent's plan; aligned like `BasicBlueAction`.
struct alignas(8) BLineStep {
  RedKind kind;
  std::array<std::uint8_t, 2> next;   // position after a failure, after a success
  std::array<std::int8_t, 4> target;  // by the user host that was drawn
};

inline constexpr std::array<std::int8_t, 4> kUserHost{kUser1, kUser2, kUser3, kUser4};
inline constexpr std::array<std::int8_t, 4> kEntryHost{kEnterprise1, kEnterprise1, kEnterprise0,
                                                       kEnterprise0};
constexpr std::array<std::int8_t, 4> always(std::int8_t target) {
  return {target, target, target, target};
}

inline constexpr std::array<BLineStep, 15> kBLineSteps{{
    {RedKind::kSweep, {0, 1}, always(kUserNet)},
    {RedKind::kScan, {1, 2}, kUserHost},
    {RedKind::kExploit, {2, 3}, kUserHost},
    {RedKind::kEscalate, {2, 4}, kUserHost},
    {RedKind::kScan, {2, 5}, kEntryHost},
    {RedKind::kExploit, {2, 6}, kEntryHost},
    {RedKind::kEscalate, {5, 7}, kEntryHost},
    {RedKind::kSweep, {5, 8}, always(kEnterpriseNet)},
    {RedKind::kScan, {5, 9}, always(kEnterprise2)},
    {RedKind::kExploit, {5, 10}, always(kEnterprise2)},
    {RedKind::kEscalate, {9, 11}, always(kEnterprise2)},
    {RedKind::kScan, {9, 12}, always(kOpServer0)},
    {RedKind::kExploit, {9, 13}, always(kOpServer0)},
    {RedKind::kEscalate, {12, 14}, always(kOpServer0)},
    {RedKind::kImpact, {13, 14}, always(kOpServer0)},
}};

/// Target of a position.
///
/// @param user_pick As in the game; before the draw, the targets do not depend on it.
inline int b_line_target(const CompiledScenario& /*scenario*/, unsigned position, Byte user_pick) {
  return kBLineSteps[position].target[user_pick & 3u];
}
inline int b_line_target(const TableScenario& scenario, unsigned position, Byte user_pick) {
  return scenario.tables().b_line_targets[user_pick % kMaxHosts][position];
}

/// Position that B_lineAgent plays next.
template <class AnyGame>
inline unsigned next_b_line_position(const AnyGame& game) {
  const bool succeeded = game.last_success == Success::kTrue;
  const unsigned position = kBLineSteps[game.position].next[succeeded];
  return position == 12 && !game.reached_12 && game.last_scan_empty ? 1 : position;
}

template <class Scenario, class Draws>
inline RedAction choose_b_line_action(const Scenario& scenario, typename Scenario::Game& game,
                                      const Draws& draws) {
  const unsigned position = next_b_line_position(game);
  game.reached_12 |= position == 12;
  if (position == 1 && game.user_pick == kNoHost) {
    game.user_pick = scenario.user_pick(draws.red_target(scenario.b_line_users()));
  }
  game.position = static_cast<Byte>(position);
  return {kBLineSteps[position].kind,
          static_cast<std::int8_t>(b_line_target(scenario, position, game.user_pick))};
}

/// Update the host lists of RedMeanderAgent by the success of its last action. Without a branch:
/// the kind of the last action differs from game to game and would be mispredicted.
template <class Scenario>
inline void update_meander(const Scenario& scenario, typename Scenario::Game& game) {
  using HostMask = typename Scenario::Mask;
  const auto only_if = [](bool condition, HostMask mask) {
    return static_cast<HostMask>(condition ? mask : HostMask{0});
  };
  const bool succeeded = game.last_success == Success::kTrue;
  game.mapped |= only_if(succeeded, game.last_exploit);
  const HostMask failed_exploit = only_if(!succeeded, game.last_exploit);
  const HostMask operational = game.escalated & scenario.meander_op();
  const HostMask enterprise = game.escalated & scenario.meander_ent();
  const HostMask lost =
      only_if(failed_exploit != 0, operational != 0 ? operational : enterprise);  // Q21
  const HostMask failed_host = only_if(game.last_success == Success::kFalse, game.last_host);
  const HostMask unescalated = lost | failed_host;
  const HostMask unexploited = failed_exploit | lost | (failed_host & game.mapped);
  game.escalated = static_cast<HostMask>(game.escalated & ~unescalated);
  game.exploited = static_cast<HostMask>(game.exploited & ~unexploited);
  game.last_exploit = 0;
  game.last_host = 0;
}

template <class Scenario, class Draws>
inline RedAction choose_meander_action(const Scenario& scenario, typename Scenario::Game& game,
                                       const Draws& draws) {
  using HostMask = typename Scenario::Mask;
  update_meander(scenario, game);
  if (game.escalated & scenario.impact_host()) {
    game.last_host = scenario.impact_host();
    return {RedKind::kImpact, static_cast<std::int8_t>(std::countr_zero(scenario.impact_host()))};
  }
  if (const unsigned nets = game.known_nets & ~game.swept; nets != 0) {
    const int net = std::countr_zero(nets);
    game.swept = static_cast<decltype(game.swept)>(game.swept | 1u << net);
    return {RedKind::kSweep, static_cast<std::int8_t>(net)};
  }
  if (const HostMask unscanned = game.known_ip & ~game.scanned; unscanned != 0) {
    const int host = draws.red_target(unscanned);
    game.scanned |= scenario.bit(host);
    return {RedKind::kScan, static_cast<std::int8_t>(host)};
  }
  if (const HostMask escalatable =
          game.known_host & ~game.escalated & (~game.mapped | game.exploited);
      escalatable != 0) {
    const int host = draws.red_target(escalatable);
    game.escalated |= scenario.bit(host);
    game.last_host = scenario.bit(host);
    return {RedKind::kEscalate, static_cast<std::int8_t>(host)};
  }
  const HostMask exploitable = game.known_ip & ~game.exploited;
  // Scenario2: Defender is known by now and its exploit always fails (rules 14). In other scenarios
  // the agent is refused if it could run out of targets. So only a forged snapshot leaves none.
  if (exploitable == 0) [[unlikely]]
    return {};
  const int host = draws.red_target(exploitable);
  game.exploited |= scenario.bit(host);
  game.last_exploit = scenario.bit(host);
  return {RedKind::kExploit, static_cast<std::int8_t>(host)};
}

/// Next action of the game's red agent; `given` if the caller plays red.
template <class Scenario, class Draws>
inline RedAction choose_red_action(const Scenario& scenario, typename Scenario::Game& game,
                                   RedAction given, const Draws& draws) {
  switch (game.red) {
    case Red::kBLine:
      return choose_b_line_action(scenario, game, draws);
    case Red::kMeander:
      return choose_meander_action(scenario, game, draws);
    case Red::kGiven:
      return given;
    case Red::kSleep:
      break;
  }
  return {};
}

}  // namespace cagepool
