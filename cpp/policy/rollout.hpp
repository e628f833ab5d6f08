#pragma once
// Rollouts: games that are played with a policy for several steps, in parts that do not wait for
// each other.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/batch.hpp"
#include "policy/features.hpp"
#include "policy/mlp_actor.hpp"

namespace cagepool {

/// The policy: an actor, its parameters, its features and the action of each of its choices.
struct RolloutPolicy {
  MlpActor& actor;
  std::span<const float> parameters;
  const FeatureEncoder& encoder;
  std::span<const std::uint8_t> actions;
};

/// Rows of a rollout buffer, one per step and game. `features` and `masks` have those of one step
/// more: the first are given, the others are written.
struct RolloutBuffer {
  std::span<float> features;
  std::span<std::uint8_t> masks;     // empty: every choice is allowed
  std::span<float> critic_features;  // features and those of the true state; empty: none
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

/// Play `steps` steps in every game of a batch. Throws std::invalid_argument, and changes nothing,
/// if an episode would end with them.
void play_rollout(Batch& batch, const RolloutPolicy& policy, const RewardConfig& rewards,
                  const RolloutEpisodes& episodes, const RolloutBuffer& buffer, std::size_t steps);

}  // namespace cagepool
