#include "core/kernel.hpp"

#include "core/step.hpp"

namespace cagepool {
namespace {

template <class Value, class Scenario>
[[gnu::noinline]] void finish_episode(const BasicBatchView<Scenario>& batch, std::size_t id) {
  auto& game = batch.store.games[id];
  batch.out.episode_returns[id] = game.return_tenths / 10.0;
  batch.out.episode_lengths[id] = game.step;
  if (batch.out.tracks_compliance()) batch.out.episode_counters[id] = batch.out.counters[id];
  game.phase = Phase::kOver;
  if (batch.autoreset != Autoreset::kSameStep) return;
  const auto& observations = batch.out.observations;
  auto* const observation = observations.template row<Value>(id);
  std::copy_n(observation, observations.columns(),
              batch.out.final_observations.template row<Value>(id));
  batch.final_games[id] = game;
  batch.out.final_true_state[id] = batch.store.true_states[id];
  start_episode(batch, id);
  std::fill_n(observation, observations.columns(), Value{0});
}

/// Whether compliance is tracked, and which hosts count as threatened.
enum class Compliance : std::uint8_t { kNone, kTrue, kObserved };

template <class Value, Compliance kCompliance, class Scenario>
inline std::size_t step_games(const BasicStepArgs<Scenario>& shared, std::size_t begin,
                              std::size_t end) {
  constexpr Knowledge kKnowledge =
      kCompliance == Compliance::kObserved ? Knowledge::kObserved : Knowledge::kTrue;
  const BasicStepArgs<Scenario> args = shared;  // a local copy: no write of the loop can alias it
  const BasicBatchView<Scenario>& batch = args.batch;
  std::size_t ended = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const auto id = static_cast<std::size_t>(args.ids[i]);
    const BasicSlot<Scenario> slot{batch.store, id};
    auto& game = slot.game();
    if (game.phase == Phase::kOver) [[unlikely]] {
      reset_game(batch, id);  // the action is ignored
      continue;
    }
    const int action = args.actions[i];
    if constexpr (kCompliance != Compliance::kNone) {
      batch.out.counters[id].threat_steps +=
          is_threatened<kKnowledge>(slot.scenario(), game, batch.rule);
      batch.out.alignment[id] = 0.0;
    }
    const auto on_fix = [&]([[maybe_unused]] const auto& before, [[maybe_unused]] auto target) {
      if constexpr (kCompliance != Compliance::kNone) {
        batch.out.alignment[id] = score_fix<kKnowledge>(
            slot.scenario(), before, target, args.orders[i], batch.rule, batch.out.counters[id]);
      }
    };
    const RedAction given =
        args.red_actions == nullptr ? RedAction{} : args.red_action_table[args.red_actions[i]];
    const BasicStepResult<Scenario> step =
        play_step(slot, action, given, RandomDraws(game.key, game.step), on_fix);
    game.observation = step.observation;
    write_values(slot.scenario(), step.observation, batch.out.observations.columns(),
                 batch.out.observations.template row<Value>(id));
    Moves& moves = batch.out.moves[id];
    static_cast<Outcomes&>(moves) = step.outcomes;
    moves.blue_action = static_cast<std::uint32_t>(action);
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
template <class Value, Compliance kCompliance, class Scenario>
[[gnu::flatten,
  gnu::target("arch=x86-64-v3")]] std::size_t step_games_v3(const BasicStepArgs<Scenario>& args,
                                                            std::size_t begin, std::size_t end) {
  return step_games<Value, kCompliance>(args, begin, end);
}
#endif

template <class Value, Compliance kCompliance, class Scenario>
BasicKernel<Scenario> kernel_for_cpu() {
#if defined(__x86_64__) && defined(__linux__)
  // Not for everything: the code is large, and takes long to compile.
  if constexpr (!Scenario::kIsTable || kCompliance == Compliance::kNone) {
    if (__builtin_cpu_supports("x86-64-v3")) return step_games_v3<Value, kCompliance, Scenario>;
  }
#endif
  return step_games<Value, kCompliance, Scenario>;
}

template <class Value, class Scenario>
BasicKernel<Scenario> kernel_for_compliance(const BasicBatchView<Scenario>& batch) {
  if (!batch.out.tracks_compliance()) return kernel_for_cpu<Value, Compliance::kNone, Scenario>();
  return batch.rule.knowledge == Knowledge::kTrue
             ? kernel_for_cpu<Value, Compliance::kTrue, Scenario>()
             : kernel_for_cpu<Value, Compliance::kObserved, Scenario>();
}

}  // namespace

template <class Scenario>
BasicKernel<Scenario> kernel_for(const BasicBatchView<Scenario>& batch) {
  return batch.out.observations.is_bytes() ? kernel_for_compliance<std::uint8_t>(batch)
                                           : kernel_for_compliance<float>(batch);
}
template BasicKernel<CompiledScenario> kernel_for(const BasicBatchView<CompiledScenario>&);
template BasicKernel<TableScenario> kernel_for(const BasicBatchView<TableScenario>&);

const char* simd_level() {
#if defined(__x86_64__) && defined(__linux__)
  if (__builtin_cpu_supports("x86-64-v4")) return "x86-64-v4";
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
#endif
  return "baseline";
}

}  // namespace cagepool
