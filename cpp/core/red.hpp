#pragma once
// Decisions of the red agents (docs/rules.md, section 6). An agent updates its memory by the
// success of its last action, then chooses the next. To add an agent: a value of `Red`, its state
// in `Game`, a function here and a case of `choose_red_action`.

#include "core/game.hpp"

namespace cagepool {

/// One position of B_lineAgent's plan.
struct BLineStep {
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

/// Position that B_lineAgent plays next.
inline unsigned next_b_line_position(const Game& game) {
  const bool succeeded = game.last_success == Success::kTrue;
  const unsigned position = kBLineSteps[game.position].next[succeeded];
  return position == 12 && !game.reached_12 && game.last_scan_empty ? 1 : position;
}

template <class Draws>
inline RedAction choose_b_line_action(Game& game, const Draws& draws) {
  const unsigned position = next_b_line_position(game);
  game.reached_12 |= position == 12;
  if (position == 1 && game.user_pick == kNoHost) {
    game.user_pick = static_cast<Byte>(draws.red_target(kUserTargets) - kUser1);
  }
  game.position = static_cast<Byte>(position);
  const BLineStep& next = kBLineSteps[position];
  // Before the draw, the targets do not depend on `user_pick`.
  return {next.kind, next.target[game.user_pick & 3u]};
}

/// Update the host lists of RedMeanderAgent by the success of its last action. Without a branch:
/// the kind of the last action differs from game to game and would be mispredicted.
inline void update_meander(Game& game) {
  const auto only_if = [](bool condition, unsigned mask) {
    return static_cast<Mask>(condition ? mask : 0u);
  };
  const bool succeeded = game.last_success == Success::kTrue;
  game.mapped |= only_if(succeeded, game.last_exploit);
  const Mask failed_exploit = only_if(!succeeded, game.last_exploit);
  const Mask operational = game.escalated & kOperational;
  const Mask enterprise = game.escalated & kEnterpriseServers;
  const Mask lost =
      only_if(failed_exploit != 0, operational != 0 ? operational : enterprise);  // Q21
  const Mask failed_host = only_if(game.last_success == Success::kFalse, game.last_host);
  const unsigned unescalated = lost | failed_host;
  const unsigned unexploited = failed_exploit | lost | (failed_host & game.mapped);
  game.escalated = static_cast<Mask>(game.escalated & ~unescalated);
  game.exploited = static_cast<Mask>(game.exploited & ~unexploited);
  game.last_exploit = 0;
  game.last_host = 0;
}

template <class Draws>
inline RedAction choose_meander_action(Game& game, const Draws& draws) {
  update_meander(game);
  if (game.escalated & bit(kOpServer0)) {
    game.last_host = bit(kOpServer0);
    return {RedKind::kImpact, kOpServer0};
  }
  if (const unsigned nets = game.known_nets & ~game.swept; nets != 0) {
    const int net = std::countr_zero(nets);
    game.swept = static_cast<Byte>(game.swept | bit(net));
    return {RedKind::kSweep, static_cast<std::int8_t>(net)};
  }
  if (const Mask unscanned = game.known_ip & ~game.scanned; unscanned != 0) {
    const int host = draws.red_target(unscanned);
    game.scanned |= bit(host);
    return {RedKind::kScan, static_cast<std::int8_t>(host)};
  }
  if (const Mask escalatable = game.known_host & ~game.escalated & (~game.mapped | game.exploited);
      escalatable != 0) {
    const int host = draws.red_target(escalatable);
    game.escalated |= bit(host);
    game.last_host = bit(host);
    return {RedKind::kEscalate, static_cast<std::int8_t>(host)};
  }
  const Mask exploitable = game.known_ip & ~game.exploited;
  // Defender is known by now and its exploit always fails (rules 14), so only a forged snapshot
  // leaves no target.
  if (exploitable == 0) [[unlikely]]
    return {};
  const int host = draws.red_target(exploitable);
  game.exploited |= bit(host);
  game.last_exploit = bit(host);
  return {RedKind::kExploit, static_cast<std::int8_t>(host)};
}

/// Next action of the game's red agent; `given` if the caller plays red.
template <class Draws>
inline RedAction choose_red_action(Game& game, RedAction given, const Draws& draws) {
  switch (game.red) {
    case Red::kBLine:
      return choose_b_line_action(game, draws);
    case Red::kMeander:
      return choose_meander_action(game, draws);
    case Red::kGiven:
      return given;
    case Red::kSleep:
      break;
  }
  return {};
}

}  // namespace cagepool
