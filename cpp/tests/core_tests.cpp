// Tests of the game that run without Python, under the sanitizers.

#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/batch.hpp"
#include "tests/checks.hpp"

namespace cagepool {
namespace {

struct Options {
  std::size_t games = 8;
  std::uint8_t reds = 0b0111;
  Autoreset autoreset = Autoreset::kNextStep;
  int threads = 1;
  std::uint16_t horizon = 30;
  bool judged = true;
  bool bytes = false;
};

/// A batch with the memory it writes. Games differ in edition, green and horizon.
class World {
 public:
  explicit World(const Options& options)
      : floats_(options.bytes ? 0 : options.games * kObservationSize),
        bytes_(options.bytes ? options.games * kObservationSize : 0),
        final_floats_(!options.bytes && options.autoreset == Autoreset::kSameStep ? floats_.size()
                                                                                  : 0),
        final_bytes_(options.bytes && options.autoreset == Autoreset::kSameStep ? bytes_.size()
                                                                                : 0),
        rewards(options.games),
        truncations_(std::make_unique<bool[]>(options.games)),
        moves(options.games),
        truth(options.games),
        returns_(options.games),
        lengths_(options.games),
        orders_(options.judged ? options.games : 0, Order{119}),
        counters(orders_.size()),
        episode_counters_(orders_.size()),
        alignment_(orders_.size()),
        batch(settings(options), outputs(), options.autoreset,
              {Knowledge::kTrue, Definition::kHost, 30.0}, options.threads) {
    for (std::size_t id = 0; id < options.games; ++id) ids.push_back(static_cast<std::int64_t>(id));
  }

  void reset(std::uint64_t seed) {
    std::vector<std::uint64_t> seeds;
    for (const std::int64_t id : ids) seeds.push_back(seed + static_cast<std::uint64_t>(id));
    batch.reset(ids, seeds);
  }

  /// Actions that depend on the game and the step alone.
  std::vector<std::int64_t> actions(std::uint32_t step, std::int64_t limit) const {
    std::vector<std::int64_t> chosen;
    for (const std::int64_t id : ids) {
      const auto random =
          static_cast<std::uint32_t>(random_word(static_cast<std::uint64_t>(id) + 99, step, 1));
      chosen.push_back(below(random, static_cast<std::uint32_t>(limit)));
    }
    return chosen;
  }

  void step(std::uint32_t step, bool red_given = false) {
    const std::vector<std::int64_t> red =
        red_given ? actions(step + 7919, kRedActions) : std::vector<std::int64_t>();
    batch.step(actions(step, kActions), red, std::nullopt);
  }

  const std::vector<float>& observations() const { return floats_; }

 private:
  static std::vector<Setting> settings(const Options& options) {
    std::vector<Setting> all;
    for (std::size_t id = 0; id < options.games; ++id) {
      all.push_back({.seed = 0,
                     .next_episode = 0,
                     .horizon = static_cast<std::uint16_t>(options.horizon + id % 3),
                     .reds = options.reds,
                     .edition = id % 2 == 0 ? Edition::k21 : Edition::kLeaderboard,
                     .green = id % 4 < 2,
                     .unused = {}});
    }
    return all;
  }

  Outputs outputs() {
    Outputs out{};
    out.float_observations = floats_;
    out.byte_observations = bytes_;
    out.float_final_observations = final_floats_;
    out.byte_final_observations = final_bytes_;
    out.rewards = rewards;
    out.truncations = {truncations_.get(), rewards.size()};
    out.moves = moves;
    out.true_state = truth;
    out.episode_returns = returns_;
    out.episode_lengths = lengths_;
    out.orders = orders_;
    out.counters = counters;
    out.episode_counters = episode_counters_;
    out.alignment = alignment_;
    return out;
  }

  std::vector<float> floats_;
  std::vector<std::uint8_t> bytes_;
  std::vector<float> final_floats_;
  std::vector<std::uint8_t> final_bytes_;

 public:
  std::vector<double> rewards;

 private:
  std::unique_ptr<bool[]> truncations_;

 public:
  std::vector<Moves> moves;
  std::vector<TrueState> truth;

 private:
  std::vector<double> returns_;
  std::vector<std::int32_t> lengths_;
  std::vector<Order> orders_;

 public:
  std::vector<Counters> counters;

 private:
  std::vector<Counters> episode_counters_;
  std::vector<double> alignment_;

 public:
  Batch batch;
  std::vector<std::int64_t> ids;
};

void test_no_sequence_of_actions_does_harm() {
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

void test_masks_counts_and_log_agree() {
  World world({.games = 24, .reds = 0b1000, .horizon = 400});
  world.reset(5);
  for (std::uint32_t step = 0; step < 399; ++step) {
    world.step(step, true);
    for (const std::int64_t id : world.ids) {
      const Game game = world.batch.game(id);
      const TrueState& truth = world.truth[static_cast<std::size_t>(id)];
      std::array<int, kHosts> sessions{};
      sessions[kUser0] = 1;
      for (const Session session : world.batch.log(id)) {
        if (session & kSessionAlive) ++sessions[session & kSessionHost];
      }
      for (int host = 0; host < kHosts; ++host) {
        const auto h = static_cast<std::size_t>(host);
        check(truth.privileged[h] + truth.user_seen[h] + truth.user_unseen[h] == sessions[h]);
        check(((game.privileged >> host) & 1) == (truth.privileged[h] != 0));
        check(((game.user_seen >> host) & 1) == (truth.user_seen[h] != 0));
        check(((game.user_unseen >> host) & 1) == (truth.user_unseen[h] != 0));
        check(((game.malware >> host) & 1) == truth.malware[h]);
        check(compromised(game, host) == truth.compromised[h]);
        check(truth.access[h] == (truth.privileged[h] != 0 ? 2 : sessions[h] != 0 ? 1 : 0));
      }
      check(truth.ot_running == (game.outage_tenths == 0));
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
    check(one.rewards == four.rewards);
    check(one.observations() == four.observations());
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

void test_a_second_caller_is_refused() {
  World world({.games = 20000, .threads = 2});
  world.reset(3);
  const std::vector<std::int64_t> actions = world.actions(0, kActions);
  std::atomic<int> refused = 0;
  const auto keep_stepping = [&] {
    for (int i = 0; i < 60; ++i) {
      try {
        world.batch.step(actions, {}, std::nullopt);
      } catch (const std::runtime_error&) {
        ++refused;
      }
    }
  };
  std::thread other(keep_stepping);
  keep_stepping();
  other.join();
  check(refused < 120);
}

void test_a_restored_game_goes_on_as_the_saved_one() {
  World world({.games = 8, .horizon = 20});
  World other({.games = 8, .horizon = 40});
  world.reset(11);
  other.reset(12);
  for (std::uint32_t step = 0; step < 9; ++step) world.step(step);
  std::vector<std::vector<std::uint8_t>> saved;
  for (const std::int64_t id : world.ids) saved.push_back(world.batch.save(id));
  const std::vector<Blob> blobs(saved.begin(), saved.end());
  other.batch.restore(world.ids, blobs);
  for (std::uint32_t step = 9; step < 70; ++step) {  // two episode ends
    world.step(step);
    other.step(step);
    check(world.rewards == other.rewards);
    check(world.observations() == other.observations());
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
  actions[2] = kActions;
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

}  // namespace
}  // namespace cagepool

int main() {
  using namespace cagepool;
  const std::vector<void (*)()> tests{
      test_no_sequence_of_actions_does_harm, test_masks_counts_and_log_agree,
      test_threads_change_nothing,           test_an_error_in_a_thread_reaches_the_caller,
      test_a_second_caller_is_refused,       test_a_restored_game_goes_on_as_the_saved_one,
      test_damaged_snapshots_are_refused,    test_wrong_calls_are_refused_and_change_nothing};
  return run_tests(tests);
}
