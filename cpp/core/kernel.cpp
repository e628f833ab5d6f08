// The loop over games, compiled for several processors; `kernel_for` picks at run time.

#include "core/kernel.hpp"

#include "core/step.hpp"

namespace cagepool {
namespace {

template <class Value>
Value* observations(const Job& job);
template <>
inline float* observations<float>(const Job& job) {
  return job.out.float_observations.data();
}
template <>
inline std::uint8_t* observations<std::uint8_t>(const Job& job) {
  return job.out.byte_observations.data();
}

template <class Value>
Value* final_observations(const Job& job);
template <>
inline float* final_observations<float>(const Job& job) {
  return job.out.float_final_observations.data();
}
template <>
inline std::uint8_t* final_observations<std::uint8_t>(const Job& job) {
  return job.out.byte_final_observations.data();
}

template <class Value>
[[gnu::noinline]] void finish(const Job& job, std::size_t id) {
  Game& game = job.store.games[id];
  job.out.episode_returns[id] = game.return_tenths / 10.0;
  job.out.episode_lengths[id] = game.step;
  if (!job.out.counters.empty()) job.out.episode_counters[id] = job.out.counters[id];
  game.phase = Phase::kOver;
  if (job.autoreset != Autoreset::kSameStep) return;
  Value* seen = observations<Value>(job) + id * kObservationSize;
  std::copy_n(seen, kObservationSize, final_observations<Value>(job) + id * kObservationSize);
  observe(0, seen);
  begin_episode(job, id);
}

/// Whether fixes are judged, and by whose knowledge.
enum class Judging : std::uint8_t { kNone, kTrue, kObserved };

template <class Value, Judging kJudging>
inline std::size_t step_games(const Job& shared, std::size_t begin, std::size_t end) {
  constexpr Knowledge kKnowledge =
      kJudging == Judging::kObserved ? Knowledge::kObserved : Knowledge::kTrue;
  const Job job = shared;  // a copy that no write of the loop can alias
  std::size_t ended = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const auto id = static_cast<std::size_t>(job.ids[i]);
    const Slot slot{job.store, id};
    Game& game = slot.game();
    if (game.phase == Phase::kOver) [[unlikely]] {
      restart(job, id);
      continue;
    }
    const auto action = static_cast<int>(job.actions[i]);
    if constexpr (kJudging != Judging::kNone) {
      job.out.counters[id].threat_steps += is_threatened<kKnowledge>(game, job.rule);
      job.out.alignment[id] = 0.0;
    }
    const auto judge = [&job, id](const Game& before, Mask target) {
      if constexpr (kJudging != Judging::kNone) {
        job.out.alignment[id] = judge_fix<kKnowledge>(before, target, job.out.orders[id], job.rule,
                                                      job.out.counters[id]);
      }
    };
    const RedAction given = job.red_actions == nullptr
                                ? RedAction{}
                                : kRedActionTable[static_cast<std::size_t>(job.red_actions[i])];
    const Step step = play(slot, action, given, Draws(game.key, game.step), judge);
    game.observation = step.observation;
    observe(step.observation, observations<Value>(job) + id * kObservationSize);
    job.out.moves[id] = step.moves;
    job.out.rewards[id] = step.reward_tenths / 10.0;
    game.return_tenths += step.reward_tenths;
    const bool over = ++game.step == game.horizon;
    job.out.truncations[id] = over;
    if (over) [[unlikely]] {
      finish<Value>(job, id);
      ++ended;
    }
  }
  return ended;
}

#if defined(__x86_64__)
template <class Value, Judging kJudging>
[[gnu::flatten, gnu::target("arch=x86-64-v3")]] std::size_t step_games_v3(const Job& job,
                                                                          std::size_t begin,
                                                                          std::size_t end) {
  return step_games<Value, kJudging>(job, begin, end);
}
#endif

template <class Value, Judging kJudging>
Kernel pick() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v3")) return step_games_v3<Value, kJudging>;
#endif
  return step_games<Value, kJudging>;
}

template <class Value>
Kernel pick(const Job& job) {
  if (job.out.counters.empty()) return pick<Value, Judging::kNone>();
  return job.rule.knowledge == Knowledge::kTrue ? pick<Value, Judging::kTrue>()
                                                : pick<Value, Judging::kObserved>();
}

}  // namespace

Kernel kernel_for(const Job& job) {
  return job.out.byte_observations.empty() ? pick<float>(job) : pick<std::uint8_t>(job);
}

}  // namespace cagepool
