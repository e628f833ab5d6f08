#pragma once
// Configuration of a game and the start of its episodes.

#include "core/outputs.hpp"
#include "core/random.hpp"

namespace cagepool {

/// When a game that is over starts its next episode, in Gymnasium's terms.
enum class Autoreset : std::uint8_t { kNextStep, kSameStep, kDisabled };

/// Bit of `GameConfig::reds` for a red agent that the caller plays.
inline constexpr std::uint8_t kGivenRed = 1 << static_cast<int>(Red::kGiven);

/// Properties of one game that outlast an episode.
struct GameConfig {
  std::uint64_t seed;
  std::uint32_t next_episode;
  std::uint16_t horizon;
  std::uint8_t reds;  // bit i: Red i may be drawn for an episode
  Edition edition;
  // Cumulative shares of all agents but the last, in units of 2^-16; the last agent of `reds` has
  // the rest. All 0: equal shares.
  std::array<std::uint16_t, kRedCount - 1> red_shares;
  std::uint8_t green;                                    // 1: GreenAgent plays, 0: it sleeps
  std::array<Byte, 8 - (2 * kRedCount - 1) % 8> unused;  // no padding for any number of agents
};

/// Pointers to the state and the outputs of a batch.
template <class Scenario>
struct BasicBatchView {
  BasicGameStore<Scenario> store;
  GameConfig* configs;
  // Of the last episode that ended; only with Autoreset::kSameStep.
  typename Scenario::Game* final_games;
  Autoreset autoreset;
  ComplianceRule rule;
  bool takes_red_actions;
  bool draws_scenarios;  // for every episode; else a game keeps its scenario
  BasicOutputs<Scenario> out;
};
using BatchView = BasicBatchView<CompiledScenario>;

/// Write an observation in the type of the batch.
template <class Scenario>
inline void write_observation(const BasicBatchView<Scenario>& batch, std::size_t id,
                              const typename Scenario::Table& table) {
  const auto& observations = batch.out.observations;
  const Scenario scenario = BasicSlot<Scenario>{batch.store, id}.scenario();
  if (observations.is_bytes()) {
    write_values(scenario, table, observations.columns(),
                 observations.template row<std::uint8_t>(id));
  } else {
    write_values(scenario, table, observations.columns(), observations.template row<float>(id));
  }
}

/// Red agent of an episode, by a random word.
inline Red draw_red(const GameConfig& config, std::uint32_t random) {
  const auto count = static_cast<std::uint32_t>(std::popcount(config.reds));
  if (config.red_shares == decltype(config.red_shares){})
    return static_cast<Red>(select_bit(config.reds, uniform_below(random, count)));
  auto drawn = Red::kGiven;
  for (int red = 0; red < kRedCount; ++red) {
    if ((config.reds & bit(red)) == 0) continue;
    drawn = static_cast<Red>(red);
    const auto index = static_cast<std::size_t>(red);
    if (index < config.red_shares.size() && random >> 16 < config.red_shares[index]) break;
  }
  return drawn;
}

/// Start the next episode of a game: random stream, scenario, red agent, initial state.
template <class Scenario>
inline void start_episode(const BasicBatchView<Scenario>& batch, std::size_t id) {
  const BasicSlot<Scenario> slot{batch.store, id};
  GameConfig& config = batch.configs[id];
  const std::uint64_t key = episode_key(config.seed, config.next_episode++);
  const std::uint64_t word = random_word(key, 0, 3);
  if constexpr (Scenario::kIsTable) {
    const auto scenarios = static_cast<std::uint32_t>(batch.store.scenarios.tables.size());
    if (batch.draws_scenarios)
      slot.game().scenario = uniform_below(static_cast<std::uint32_t>(word >> 32), scenarios);
  }
  const Red red = draw_red(config, static_cast<std::uint32_t>(word));
  initialize_game(slot, key, config.horizon, red, config.edition, config.green != 0);
  if (batch.out.tracks_compliance()) batch.out.counters[id] = {};
}

/// Start the next episode and write its first observation, with a reward of 0.
template <class Scenario>
inline void reset_game(const BasicBatchView<Scenario>& batch, std::size_t id) {
  start_episode(batch, id);
  write_observation(batch, id, typename Scenario::Table{});
  batch.out.rewards[id] = 0.0;
  batch.out.truncations[id] = false;
  batch.out.moves[id] = {};
  if (batch.out.tracks_compliance()) batch.out.alignment[id] = 0.0;
}

}  // namespace cagepool
