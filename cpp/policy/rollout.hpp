#pragma once
// Rollouts: games that are played with a policy for several steps, in parts that do not wait for
// each other.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/batch.hpp"
#include "core/belief.hpp"
#include "policy/encoder.hpp"
#include "policy/mlp_actor.hpp"

namespace cagepool {

/// The policy: an actor, its parameters and its features.
struct RolloutPolicy {
  MlpActor& actor;
  std::span<const float> parameters;
  const FeatureEncoder& encoder;
  BeliefFilter* belief;  // of the same games of CAGE-2, its features are the last ones; or nullptr
};

/// Rows of a rollout buffer, one per step and game. `features` and `masks` have those of one step
/// more: the first are given, the others are written.
struct RolloutBuffer {
  std::span<float> features;
  std::span<std::uint8_t> masks;     // empty: every choice is allowed
  std::span<float> critic_features;  // features and those of the true state, in CAGE-2 only
  std::span<const float> uniforms;
  std::span<std::int64_t> chosen;
  std::span<float> log_probabilities;
  std::span<float> rewards;  // with alignment, weight and scale
};

/// What a rollout knows of each game's episode.
struct RolloutEpisodes {
  std::span<History> histories;
  std::span<double> returns;
  std::span<std::int64_t> lengths;
};

struct RewardConfig {
  std::span<const float> weights;  // by step of the episode; empty: all are 1
  double scale;
};

/// Nanoseconds by stage, summed over the threads.
struct RolloutTimes {
  std::uint64_t policy;  // forward passes and sampling
  std::uint64_t games;
  std::uint64_t features;  // rewards, features, beliefs and masks
};

/// Play `steps` steps in every game of a batch. Throws std::invalid_argument, and changes nothing,
/// if an episode would end with them.
template <class Scenario>
RolloutTimes play_rollout(BasicBatch<Scenario>& batch, const RolloutPolicy& policy,
                          const RewardConfig& rewards, const RolloutEpisodes& episodes,
                          const RolloutBuffer& buffer, std::size_t steps);

}  // namespace cagepool
