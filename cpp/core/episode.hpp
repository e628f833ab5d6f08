#pragma once
// What a batch hands to the loop that steps its games, and the start of an episode.

#include <optional>
#include <span>

#include "core/compliance.hpp"
#include "core/observe.hpp"
#include "core/random.hpp"

namespace cagepool {

enum class Autoreset : std::uint8_t { kNextStep, kSameStep, kDisabled };

inline constexpr std::uint8_t kGivenRed = 1 << static_cast<int>(Red::kGiven);

/// What one game is from one episode to the next.
struct Setting {
  std::uint64_t seed;
  std::uint32_t next_episode;
  std::uint16_t horizon;
  std::uint8_t reds;  // bit i: Red i may be drawn for an episode
  Edition edition;
  bool green;
  std::array<Byte, 7> unused;
};

/// Where a batch writes its results. The memory belongs to the caller and must outlive the batch.
struct Outputs {
  std::span<float> float_observations;        // games x kObservationSize, or empty
  std::span<std::uint8_t> byte_observations;  // the same as bytes, or empty
  std::span<double> rewards;
  std::span<bool> truncations;
  std::span<Moves> moves;
  std::span<TrueState> true_state;
  // The last finished episode of each game.
  std::span<float> float_final_observations;  // same-step reset only, else empty
  std::span<std::uint8_t> byte_final_observations;
  std::span<double> episode_returns;
  std::span<std::int32_t> episode_lengths;
  // Compliance, or empty.
  std::span<Order> orders;
  std::span<Counters> counters;
  std::span<Counters> episode_counters;
  std::span<double> alignment;
};

/// One call's worth of stepping, as the kernels see it.
struct Job {
  Store store;
  Setting* settings;
  Autoreset autoreset;
  ComplianceRule rule;
  bool takes_red_actions;
  const std::int64_t* ids;
  const std::int64_t* actions;
  const std::int64_t* red_actions;  // null: no game needs them
  Outputs out;
};

/// Write an observation, in the type that was asked for.
inline void show(const Job& job, std::size_t id, std::uint64_t bits) {
  if (job.out.byte_observations.empty()) {
    observe(bits, job.out.float_observations.data() + id * kObservationSize);
  } else {
    observe(bits, job.out.byte_observations.data() + id * kObservationSize);
  }
}

/// Start the next episode of a game: its stream, its red, the initial state.
inline void begin_episode(const Job& job, std::size_t id) {
  Setting& setting = job.settings[id];
  const std::uint64_t key = episode_key(setting.seed, setting.next_episode++);
  const auto reds = static_cast<std::uint32_t>(std::popcount(setting.reds));
  const int red =
      select_bit(setting.reds, below(static_cast<std::uint32_t>(random_word(key, 0, 3)), reds));
  clear({job.store, id}, key, setting.horizon, static_cast<Red>(red), setting.edition,
        setting.green);
  if (!job.out.counters.empty()) job.out.counters[id] = {};
}

/// Start the next episode and show its first observation: the action of such a step, if any, is
/// ignored.
inline void restart(const Job& job, std::size_t id) {
  begin_episode(job, id);
  show(job, id, 0);
  job.out.rewards[id] = 0.0;
  job.out.truncations[id] = false;
  job.out.moves[id] = Moves{};
  if (!job.out.alignment.empty()) job.out.alignment[id] = 0.0;
}

}  // namespace cagepool
