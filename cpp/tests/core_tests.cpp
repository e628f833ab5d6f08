// Tests of the game and the batch, without Python, so that all sanitizers can run them.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/batch.hpp"
#include "core/belief.hpp"
#include "policy/belief_features.hpp"
#include "policy/rollout.hpp"
#include "policy/true_state_features.hpp"
#include "tests/cage2_encoder.hpp"
#include "tests/checks.hpp"

namespace cagepool {
namespace {

struct Options {
  std::size_t games = 8;
  std::uint8_t reds = 0b0111;
  Autoreset autoreset = Autoreset::kNextStep;
  int threads = 1;
  std::uint16_t horizon = 30;
  bool bytes = false;
};

/// A batch with the memory it writes, each array exactly as large as it must be, so that sanitizers
/// notice an access beyond it. Games differ in edition, green and horizon.
class World {
 public:
  explicit World(const Options& options)
      : out(allocate_outputs(options)),
        batch({}, configs(options), out, options.autoreset,
              ComplianceRule::make(Knowledge::kTrue, Definition::kHost, 30.0), options.threads),
        ids(options.games) {
    std::iota(ids.begin(), ids.end(), 0);
  }

  void reset(std::uint64_t seed) {
    std::vector<std::uint64_t> seeds(ids.size());
    std::iota(seeds.begin(), seeds.end(), seed);
    batch.reset(ids, seeds);
  }

  /// Actions that depend on the game and the step alone.
  std::vector<std::int64_t> actions(std::uint32_t step, std::uint32_t limit) const {
    std::vector<std::int64_t> chosen;
    for (const std::int64_t id : ids) {
      const auto random =
          static_cast<std::uint32_t>(random_word(static_cast<std::uint64_t>(id) + 99, step, 1));
      chosen.push_back(uniform_below(random, limit));
    }
    return chosen;
  }

  void step(std::uint32_t step, bool red_given = false) {
    const std::vector<std::int64_t> red =
        red_given ? actions(step + 7919, kRedActionCount) : std::vector<std::int64_t>();
    batch.step(actions(step, kActionCount), red, std::nullopt);
  }

  std::span<const float> observed() const {
    return {out.observations.floats, out.observations.rows * kObservationSize};
  }

 private:
  static std::vector<GameConfig> configs(const Options& options) {
    std::vector<GameConfig> all(options.games);
    for (std::size_t id = 0; id < options.games; ++id) {
      all[id] = {.seed = 0,
                 .next_episode = 0,
                 .horizon = static_cast<std::uint16_t>(options.horizon + id % 3),
                 .reds = options.reds,
                 .edition = id % 2 == 0 ? Edition::k21 : Edition::kLeaderboard,
                 .green = id % 4 < 2,
                 .unused = {}};
    }
    return all;
  }

  Outputs allocate_outputs(const Options& options) {
    Outputs outputs;
    for_each_output<Outputs>([&](const auto& field) {
      const bool is_present = field.condition != OutputCondition::kSameStepReset ||
                              options.autoreset == Autoreset::kSameStep;
      if (is_present) allocate(outputs.*field.array, options);
    });
    std::ranges::fill(outputs.orders, Order{119});
    return outputs;
  }
  template <class Element>
  void allocate(std::span<Element>& array, const Options& options) {
    // NOLINTNEXTLINE(modernize-avoid-c-arrays): a vector of bool would not do
    const std::shared_ptr memory = std::make_unique<Element[]>(options.games);
    memory_.push_back(memory);
    array = {memory.get(), options.games};
  }
  void allocate(Observations<CompiledScenario>& array, const Options& options) {
    array.rows = options.games;
    array.column_count = kObservationSize;
    const std::size_t values = array.rows * array.column_count;
    if (options.bytes) {
      array.bytes = allocate_values<std::uint8_t>(values);
    } else {
      array.floats = allocate_values<float>(values);
    }
  }
  template <class Value>
  Value* allocate_values(std::size_t count) {
    // NOLINTNEXTLINE(modernize-avoid-c-arrays): as above
    const std::shared_ptr memory = std::make_unique<Value[]>(count);
    memory_.push_back(memory);
    return memory.get();
  }

  std::vector<std::shared_ptr<void>> memory_;

 public:
  Outputs out;
  Batch batch;
  std::vector<std::int64_t> ids;
};

void check_same_results(const World& one, const World& other) {
  check(std::ranges::equal(one.out.rewards, other.out.rewards));
  check(std::ranges::equal(one.observed(), other.observed()));
}

void test_random_games_break_no_memory_rule() {
  for (const Autoreset autoreset : {Autoreset::kNextStep, Autoreset::kSameStep}) {
    for (const bool bytes : {false, true}) {
      for (const std::uint8_t reds : {0b0001, 0b0010, 0b0100, 0b1000, 0b0111}) {
        World world(
            {.games = 40, .reds = reds, .autoreset = autoreset, .horizon = 200, .bytes = bytes});
        world.reset(reds);
        for (std::uint32_t step = 0; step < 700; ++step) world.step(step, reds == 0b1000);
      }
    }
  }
}

void test_masks_counts_and_session_log_agree() {
  World world({.games = 24, .reds = 0b1000, .horizon = 400});
  world.reset(5);
  for (std::uint32_t step = 0; step < 399; ++step) {
    world.step(step, true);
    for (const std::int64_t id : world.ids) {
      const Game game = world.batch.game(id);
      const TrueState& true_state = world.out.true_state[static_cast<std::size_t>(id)];
      std::array<int, kHostCount> sessions{};
      sessions[kUser0] = 1;
      for (const Session session : world.batch.session_log(id)) {
        if (session & CompiledScenario::Bits::kAlive)
          ++sessions[session & CompiledScenario::Bits::kHost];
      }
      for (int host = 0; host < kHostCount; ++host) {
        const auto h = static_cast<std::size_t>(host);
        check(true_state.privileged[h] + true_state.user_seen[h] + true_state.user_unseen[h] ==
              sessions[h]);
        check(((game.privileged >> host) & 1) == (true_state.privileged[h] != 0));
        check(((game.user_seen >> host) & 1) == (true_state.user_seen[h] != 0));
        check(((game.user_unseen >> host) & 1) == (true_state.user_unseen[h] != 0));
        check(((game.malware >> host) & 1) == true_state.malware[h]);
        check(compromised(game, host) == true_state.compromised[h]);
        check(true_state.access[h] == (true_state.privileged[h] != 0 ? 2
                                       : sessions[h] != 0            ? 1
                                                                     : 0));
      }
      check(true_state.ot_running[kOpServer0] == (game.outage_tenths == 0));
    }
  }
}

void test_threads_change_nothing() {
  World one({.games = 2000});
  World four({.games = 2000, .threads = 4});
  one.reset(1);
  four.reset(1);
  for (std::uint32_t step = 0; step < 150; ++step) {
    one.step(step);
    four.step(step);
    check_same_results(one, four);
  }
}

void test_an_error_in_a_thread_reaches_the_caller() {
  ThreadPool pool(4);
  std::atomic<int> calls = 0;
  const auto run = [&] {
    pool.run(50, [&](std::size_t chunk) {
      ++calls;
      if (chunk == 17) throw std::runtime_error("chunk 17");
    });
  };
  check_throws<std::runtime_error>(run, "chunk 17");
  check(calls == 50);
  pool.run(8, [&](std::size_t) { ++calls; });
  check(calls == 58);
}

/// Two threads step the same batch until one of them is refused. Calls overlap within milliseconds,
/// so that the test reaches its time limit, and fails, only if nothing refuses a second caller.
void test_a_second_caller_is_refused_and_changes_nothing() {
  World world({.games = 4000, .horizon = 10000});
  world.reset(3);
  const std::vector<std::int64_t> actions = world.actions(0, kActionCount);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::atomic<int> refused = 0;
  std::atomic<int> played = 0;
  const auto step_until_refused = [&] {
    while (refused == 0 && std::chrono::steady_clock::now() < deadline) {
      try {
        world.batch.step(actions, {}, std::nullopt);
        ++played;
      } catch (const std::runtime_error& error) {
        check(std::string(error.what()).find("one thread at a time") != std::string::npos);
        ++refused;
      }
    }
  };
  std::thread other(step_until_refused);
  step_until_refused();
  other.join();
  check(refused > 0);
  check(std::cmp_equal(world.batch.game(0).step, played.load()));
}

void test_a_restored_game_goes_on_as_the_saved_one() {
  World world({.games = 8, .horizon = 20});
  World other({.games = 8, .horizon = 40});
  world.reset(11);
  other.reset(12);
  for (std::uint32_t step = 0; step < 9; ++step) world.step(step);
  std::vector<std::vector<std::uint8_t>> saved;
  saved.reserve(world.ids.size());
  for (const std::int64_t id : world.ids) saved.push_back(world.batch.save(id));
  const std::vector<Blob> blobs(saved.begin(), saved.end());
  other.batch.restore(world.ids, blobs);
  for (std::uint32_t step = 9; step < 70; ++step) {  // two episode ends
    world.step(step);
    other.step(step);
    check_same_results(world, other);
  }
}

/// Filters of the games of a world, one each, because they differ in edition and green.
std::vector<std::unique_ptr<BeliefFilter>> filters_of(const Options& options,
                                                      std::size_t capacity) {
  std::vector<std::unique_ptr<BeliefFilter>> filters;
  for (std::size_t id = 0; id < options.games; ++id) {
    const BeliefConfig config{.prior = {1.0, 2.0, 1.0},
                              .edition = id % 2 == 0 ? Edition::k21 : Edition::kLeaderboard,
                              .green = id % 4 < 2,
                              .capacity = capacity,
                              .threads = 1};
    filters.push_back(std::make_unique<BeliefFilter>(1, config));
  }
  return filters;
}

constexpr std::array<std::int64_t, 1> kOnlyGame{0};

void test_beliefs_keep_the_truth_and_break_no_memory_rule() {
  const Options options{.games = 40, .autoreset = Autoreset::kDisabled, .horizon = 70};
  World world(options);
  world.reset(3);
  const auto whole = filters_of(options, 2000);
  const auto small = filters_of(options, 3);
  for (std::uint32_t step = 0; step < 69; ++step) {
    const std::vector<std::int64_t> actions = world.actions(step, step % 3 == 0 ? kActionCount : 1);
    world.batch.step(actions, {}, std::nullopt);
    for (std::size_t id = 0; id < options.games; ++id) {
      const std::array observation{world.batch.game(world.ids[id]).observation};
      const std::array action{actions[id]};
      whole[id]->update(kOnlyGame, action, observation);
      small[id]->update(kOnlyGame, action, observation);
      const Snapshot truth = read_snapshot(world.batch.save(world.ids[id]));
      check(whole[id]->probability_of(0, truth) > 0.0);
      check(small[id]->hypotheses(0).size() <= 3);
      const BeliefRow<double> row = belief_row<double>(whole[id]->hypotheses(0));
      check(row.privileged[kUser0] > 1.0 - 1e-9);
      const Snapshot sampled = whole[id]->sample(0, step, 100);
      check(whole[id]->probability_of(0, read_snapshot(to_bytes(sampled))) > 0.0);
    }
  }
}

void test_damaged_beliefs_are_refused_or_play_on() {
  const Options options{.games = 8, .autoreset = Autoreset::kDisabled};
  World world(options);
  world.reset(4);
  const auto filters = filters_of(options, 64);
  for (std::uint32_t step = 0; step < 20; ++step) {
    const std::vector<std::int64_t> actions = world.actions(step, 60);
    world.batch.step(actions, {}, std::nullopt);
    for (std::size_t id = 0; id < options.games; ++id) {
      filters[id]->update(kOnlyGame, std::array{actions[id]},
                          std::array{world.batch.game(world.ids[id]).observation});
    }
  }
  for (const auto& filter : filters) {
    const std::array state{filter->state(0)};
    const std::vector<Hypothesis> good(filter->hypotheses(0).begin(), filter->hypotheses(0).end());
    for (std::size_t at = 0; at < sizeof(Hypothesis) * 8; ++at) {
      std::vector<Hypothesis> bad = good;
      reinterpret_cast<std::uint8_t*>(bad.data())[at / 8] ^= static_cast<std::uint8_t>(1 << at % 8);
      try {
        filter->restore(state, bad);
      } catch (const std::invalid_argument&) {
        continue;
      }
      for (const int action : {0, 20, 140})
        filter->update(kOnlyGame, std::array{std::int64_t{action}}, std::array{std::uint64_t{0}});
    }
    filter->restore(state, good);
    check(filter->hypotheses(0).size() == good.size());
  }
}

void test_damaged_snapshots_are_refused() {
  World world({.games = 3});
  world.reset(2);
  for (std::uint32_t step = 0; step < 20; ++step) world.step(step);
  const std::vector<std::uint8_t> good = world.batch.save(1);
  const std::vector<std::int64_t> target{0};
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::vector<std::uint8_t> bad = good;
    bad[at] ^= 0x40;
    const std::vector<Blob> blobs{Blob(bad)};
    check_throws<std::invalid_argument>([&] { world.batch.restore(target, blobs); },
                                        "a snapshot must");
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::vector<Blob> blobs{Blob(good).first(size)};
    check_throws<std::invalid_argument>([&] { world.batch.restore(target, blobs); },
                                        "a snapshot must");
  }
}

void test_wrong_calls_are_refused_and_change_nothing() {
  World world({.games = 4, .autoreset = Autoreset::kDisabled});
  std::vector<std::int64_t> actions(4, 0);
  const auto step = [&] { world.batch.step(actions, {}, std::nullopt); };
  check_throws<std::runtime_error>(step, "reset must come before step");
  world.reset(0);
  step();
  const std::vector<std::uint8_t> before = world.batch.save(2);
  actions[2] = kActionCount;
  check_throws<std::out_of_range>(step, "the action of game 2 must be below 145, got 145");
  actions[2] = -1;
  check_throws<std::out_of_range>(step, "the action of game 2 must be below 145, got -1");
  actions = {0, 0};
  check_throws<std::invalid_argument>(step, "got 2 for 4 games");
  const std::vector<std::int64_t> twice{1, 1};
  check_throws<std::invalid_argument>([&] { world.batch.step(actions, {}, twice); }, "got 1 twice");
  check(world.batch.save(2) == before);
  for (std::uint32_t i = 1; i < 30; ++i) world.step(i);
  check_throws<std::runtime_error>([&] { world.step(30); }, "is over");
}

/// Play rollouts of several lengths and return their features.
std::vector<float> played_features(World& world, int threads) {
  const FeatureEncoder encoder(cage2_tables(), kAllGroups, EncoderForm::kFlat, 30, kBeliefFeatures);
  BeliefFilter belief(
      world.ids.size(),
      {.prior = {1, 1, 1}, .edition = Edition::k21, .green = false, .capacity = 64, .threads = 1});
  MlpActor actor({{static_cast<int>(encoder.size()), kActionCount}, Activation::kTanh}, threads);
  const std::vector<float> parameters(actor.shape().size());
  std::vector<History> histories(world.ids.size());
  std::vector<double> returns(world.ids.size());
  std::vector<std::int64_t> lengths(world.ids.size());
  std::vector<float> all;
  for (const std::size_t steps : {1U, 3U, 20U}) {
    const std::size_t cells = steps * world.ids.size();
    std::vector<float> uniforms(cells);
    for (std::size_t i = 0; i < cells; ++i)
      uniforms[i] =
          static_cast<float>(random_word(steps, static_cast<std::uint32_t>(i), 1) >> 40) * 0x1p-24F;
    std::vector<float> features((cells + world.ids.size()) * encoder.size());
    std::vector<std::uint8_t> masks((cells + world.ids.size()) * kActionCount, 1);
    std::vector<float> critic((cells + world.ids.size()) *
                              (encoder.size() + true_state_feature_count()));
    std::vector<std::int64_t> chosen(cells);
    std::vector<float> logs(cells);
    std::vector<float> rewards(cells);
    play_rollout(world.batch, {actor, parameters, encoder, &belief}, {{}, 0.1},
                 {histories, returns, lengths},
                 {features, masks, critic, uniforms, chosen, logs, rewards}, steps);
    for (const auto& values : {features, critic, logs, rewards})
      all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void test_rollouts_do_not_depend_on_threads() {
  World one({.games = 150, .autoreset = Autoreset::kSameStep});
  World other({.games = 150, .autoreset = Autoreset::kSameStep});
  one.reset(3);
  other.reset(3);
  check(played_features(one, 1) == played_features(other, 3));
  check_same_results(one, other);
  check_throws<std::invalid_argument>([&] { played_features(one, 1); }, "no episode may end");
}

}  // namespace
}  // namespace cagepool

int main() {
  using namespace cagepool;
  const std::vector<void (*)()> tests{test_random_games_break_no_memory_rule,
                                      test_masks_counts_and_session_log_agree,
                                      test_threads_change_nothing,
                                      test_rollouts_do_not_depend_on_threads,
                                      test_an_error_in_a_thread_reaches_the_caller,
                                      test_a_second_caller_is_refused_and_changes_nothing,
                                      test_a_restored_game_goes_on_as_the_saved_one,
                                      test_beliefs_keep_the_truth_and_break_no_memory_rule,
                                      test_damaged_beliefs_are_refused_or_play_on,
                                      test_damaged_snapshots_are_refused,
                                      test_wrong_calls_are_refused_and_change_nothing};
  return run_tests(tests);
}
