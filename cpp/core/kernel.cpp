#include "core/kernel.hpp"

#include "core/step.hpp"

namespace cagepool {
namespace {

template <class Value>
[[gnu::noinline]] void finish_episode(const BatchView& batch, std::size_t id) {
  Game& game = batch.store.games[id];
  batch.out.episode_returns[id] = game.return_tenths / 10.0;
  batch.out.episode_lengths[id] = game.step;
  if (batch.out.tracks_compliance()) batch.out.episode_counters[id] = batch.out.counters[id];
  game.phase = Phase::kOver;
  if (batch.autoreset != Autoreset::kSameStep) return;
  Observation<Value>& observation = batch.out.observations.as<Value>()[id];
  batch.out.final_observations.as<Value>()[id] = observation;
  batch.final_games[id] = game;
  batch.out.final_true_state[id] = batch.store.true_states[id];
  expand_observation(0, observation.data());
  start_episode(batch, id);
}

/// Whether compliance is tracked, and which hosts count as threatened.
enum class Compliance : std::uint8_t { kNone, kTrue, kObserved };

template <class Value, Compliance kCompliance>
inline std::size_t step_games(const StepArgs& shared, std::size_t begin, std::size_t end) {
  constexpr Knowledge kKnowledge =
      kCompliance == Compliance::kObserved ? Knowledge::kObserved : Knowledge::kTrue;
  const StepArgs args = shared;  // a local copy: no write of the loop can alias it
  const BatchView& batch = args.batch;
  std::size_t ended = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const auto id = static_cast<std::size_t>(args.ids[i]);
    const Slot slot{batch.store, id};
    Game& game = slot.game();
    if (game.phase == Phase::kOver) [[unlikely]] {
      reset_game(batch, id);  // the action is ignored
      continue;
    }
    const int action = args.actions[i];
    if constexpr (kCompliance != Compliance::kNone) {
      batch.out.counters[id].threat_steps += is_threatened<kKnowledge>(game, batch.rule);
      batch.out.alignment[id] = 0.0;
    }
    const auto on_fix = [&](const Game& before, Mask target) {
      if constexpr (kCompliance != Compliance::kNone) {
        batch.out.alignment[id] = score_fix<kKnowledge>(before, target, args.orders[i], batch.rule,
                                                        batch.out.counters[id]);
      }
    };
    const RedAction given =
        args.red_actions == nullptr ? RedAction{} : kRedActions[args.red_actions[i]];
    const StepResult step =
        play_step(slot, action, given, RandomDraws(game.key, game.step), on_fix);
    game.observation = step.observation;
    expand_observation(step.observation, batch.out.observations.as<Value>()[id].data());
    batch.out.moves[id] = step.moves;
    batch.out.rewards[id] = step.reward_tenths / 10.0;
    game.return_tenths += step.reward_tenths;
    const bool over = ++game.step == game.horizon;
    batch.out.truncations[id] = over;
    if (over) [[unlikely]] {
      finish_episode<Value>(batch, id);
      ++ended;
    }
  }
  return ended;
}

#if defined(__x86_64__) && defined(__linux__)
template <class Value, Compliance kCompliance>
[[gnu::flatten, gnu::target("arch=x86-64-v3")]] std::size_t step_games_v3(const StepArgs& args,
                                                                          std::size_t begin,
                                                                          std::size_t end) {
  return step_games<Value, kCompliance>(args, begin, end);
}
#endif

template <class Value, Compliance kCompliance>
Kernel kernel_for_cpu() {
#if defined(__x86_64__) && defined(__linux__)
  if (__builtin_cpu_supports("x86-64-v3")) return step_games_v3<Value, kCompliance>;
#endif
  return step_games<Value, kCompliance>;
}

template <class Value>
Kernel kernel_for_compliance(const BatchView& batch) {
  if (!batch.out.tracks_compliance()) return kernel_for_cpu<Value, Compliance::kNone>();
  return batch.rule.knowledge == Knowledge::kTrue ? kernel_for_cpu<Value, Compliance::kTrue>()
                                                  : kernel_for_cpu<Value, Compliance::kObserved>();
}

}  // namespace

Kernel kernel_for(const BatchView& batch) {
  return batch.out.observations.is_bytes() ? kernel_for_compliance<std::uint8_t>(batch)
                                           : kernel_for_compliance<float>(batch);
}

const char* simd_level() {
#if defined(__x86_64__) && defined(__linux__)
  if (__builtin_cpu_supports("x86-64-v4")) return "x86-64-v4";
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
#endif
  return "baseline";
}

}  // namespace cagepool
