#include "core/batch.hpp"

#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/kernel.hpp"

namespace cagepool {
namespace {

// Small enough to share out evenly, large enough that handing one over costs nothing beside it.
constexpr std::size_t kChunk = 256;

std::string counts(const std::string& name, std::size_t given, std::size_t games) {
  return "there must be one " + name + " a game, got " + std::to_string(given) + " for " +
         std::to_string(games) + " games";
}

std::size_t longest(const std::vector<Setting>& settings) {
  std::size_t horizon = 0;
  for (const Setting& setting : settings) horizon = std::max<std::size_t>(horizon, setting.horizon);
  return horizon;
}

void check_settings(const std::vector<Setting>& settings) {
  if (settings.empty()) throw std::invalid_argument("a batch must have at least 1 game, got 0");
  for (std::size_t id = 0; id < settings.size(); ++id) {
    const Setting& setting = settings[id];
    const std::string where = " of game " + std::to_string(id);
    if (setting.horizon == 0)
      throw std::invalid_argument("the horizon" + where + " must be at least 1, got 0");
    if (setting.reds == 0 || setting.reds >= 1u << kReds) {
      throw std::invalid_argument("the reds" + where + " must be a set of known agents, got bits " +
                                  std::to_string(setting.reds));
    }
    if (setting.edition > Edition::kLeaderboard) {
      throw std::invalid_argument("the edition" + where + " must be 0 or 1, got " +
                                  std::to_string(static_cast<int>(setting.edition)));
    }
  }
}

void check_outputs(const Outputs& out, std::size_t games, Autoreset autoreset) {
  const auto check = [](std::size_t size, std::size_t wanted, const char* name) {
    if (size != wanted) {
      throw std::invalid_argument(std::string(name) + " must have " + std::to_string(wanted) +
                                  " elements, got " + std::to_string(size));
    }
  };
  const bool bytes = !out.byte_observations.empty();
  const std::size_t values = games * kObservationSize;
  const std::size_t final_values = autoreset == Autoreset::kSameStep ? values : 0;
  check(bytes ? out.byte_observations.size() : out.float_observations.size(), values,
        "observations");
  check(bytes ? out.byte_final_observations.size() : out.float_final_observations.size(),
        final_values, "final_observations");
  check(out.rewards.size(), games, "rewards");
  check(out.truncations.size(), games, "truncations");
  check(out.moves.size(), games, "moves");
  check(out.true_state.size(), games, "true_state");
  check(out.episode_returns.size(), games, "episode_returns");
  check(out.episode_lengths.size(), games, "episode_lengths");
  const std::size_t judged = out.counters.empty() ? 0 : games;
  check(out.orders.size(), judged, "orders");
  check(out.counters.size(), judged, "counters");
  check(out.episode_counters.size(), judged, "episode_counters");
  check(out.alignment.size(), judged, "alignment");
  for (std::size_t id = 0; id < out.orders.size(); ++id) {
    if (out.orders[id] < kOrders) continue;
    throw std::invalid_argument("the order of game " + std::to_string(id) + " must be below " +
                                std::to_string(kOrders) + ", got " +
                                std::to_string(out.orders[id]));
  }
}

}  // namespace

class Batch::Entry {
 public:
  explicit Entry(Batch& batch) : entered_(batch.entered_) {
    if (entered_.exchange(true, std::memory_order_acquire)) {
      throw std::runtime_error(
          "a batch must be used by one thread at a time; another call is under way");
    }
  }
  ~Entry() { entered_.store(false, std::memory_order_release); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  std::atomic<bool>& entered_;
};

Batch::Batch(std::vector<Setting> settings, const Outputs& outputs, Autoreset autoreset,
             ComplianceRule rule, int threads)
    : settings_(std::move(settings)), out_(outputs), autoreset_(autoreset), rule_(rule) {
  check_settings(settings_);
  check_outputs(out_, settings_.size(), autoreset_);
  if (threads < 1)
    throw std::invalid_argument("threads must be at least 1, got " + std::to_string(threads));
  games_.resize(settings_.size());
  named_.resize(settings_.size());
  all_ids_.resize(settings_.size());
  std::iota(all_ids_.begin(), all_ids_.end(), 0);
  unstarted_ = settings_.size();
  log_size_ = longest(settings_);
  logs_.resize(settings_.size() * log_size_);
  takes_red_actions_ = std::ranges::any_of(
      settings_, [](const Setting& setting) { return (setting.reds & kGivenRed) != 0; });
  // More threads than chunks would never find work.
  const std::size_t useful = (settings_.size() + kChunk - 1) / kChunk;
  threads = static_cast<int>(std::min(static_cast<std::size_t>(threads), useful));
  if (threads > 1) pool_.reset(std::make_unique<ThreadPool>(threads).release());
}

Job Batch::job() {
  return {.store = {games_.data(), out_.true_state.data(), logs_.data(), log_size_},
          .settings = settings_.data(),
          .autoreset = autoreset_,
          .rule = rule_,
          .takes_red_actions = takes_red_actions_,
          .ids = all_ids_.data(),
          .actions = nullptr,
          .red_actions = nullptr,
          .out = out_};
}

std::size_t Batch::checked(std::int64_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= games()) {
    throw std::out_of_range("a game's index must be below " + std::to_string(games()) + ", got " +
                            std::to_string(id));
  }
  return static_cast<std::size_t>(id);
}

void Batch::check_distinct(std::span<const std::int64_t> ids) {
  for (const std::int64_t id : ids) checked(id);
  std::int64_t twice = -1;
  for (const std::int64_t id : ids) {
    std::uint8_t& named = named_[static_cast<std::size_t>(id)];
    if (named) twice = id;
    named = 1;
  }
  for (const std::int64_t id : ids) named_[static_cast<std::size_t>(id)] = 0;
  if (twice >= 0)
    throw std::invalid_argument("each game may be named once, got " + std::to_string(twice) +
                                " twice");
}

void Batch::reset(std::span<const std::int64_t> ids, std::span<const std::uint64_t> seeds) {
  const Entry entry(*this);
  check_distinct(ids);
  if (!seeds.empty() && seeds.size() != ids.size())
    throw std::invalid_argument(counts("seed", seeds.size(), ids.size()));
  const Job all = job();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<std::size_t>(ids[i]);
    if (games_[id].phase == Phase::kUnstarted) --unstarted_;
    if (!seeds.empty()) {
      settings_[id].seed = seeds[i];
      settings_[id].next_episode = 0;
    }
    restart(all, id);
  }
}

void Batch::reseed(std::span<const std::int64_t> ids, std::span<const std::uint64_t> seeds) {
  const Entry entry(*this);
  check_distinct(ids);
  if (seeds.size() != ids.size())
    throw std::invalid_argument(counts("seed", seeds.size(), ids.size()));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<std::size_t>(ids[i]);
    settings_[id].seed = seeds[i];
    settings_[id].next_episode = 1;
    games_[id].key = episode_key(seeds[i], 0);
  }
}

void Batch::check_step(std::span<const std::int64_t> actions,
                       std::span<const std::int64_t> red_actions,
                       std::optional<std::span<const std::int64_t>> ids) {
  const std::size_t count = ids ? ids->size() : games();
  const auto id_of = [&](std::size_t i) { return ids ? (*ids)[i] : static_cast<std::int64_t>(i); };
  const auto check = [&](std::span<const std::int64_t> given, std::int64_t limit,
                         const std::string& name) {
    if (given.size() != count) throw std::invalid_argument(counts(name, given.size(), count));
    // One pass without a branch a game; the culprit is looked for only if there is one.
    std::uint64_t largest = 0;
    for (const std::int64_t action : given)
      largest = std::max(largest, static_cast<std::uint64_t>(action));
    if (std::cmp_less(largest, limit)) return;
    for (std::size_t i = 0; i < count; ++i) {
      if (given[i] >= 0 && given[i] < limit) continue;
      throw std::out_of_range("the " + name + " of game " + std::to_string(id_of(i)) +
                              " must be below " + std::to_string(limit) + ", got " +
                              std::to_string(given[i]));
    }
  };
  if (ids) check_distinct(*ids);
  check(actions, kActions, "action");
  if (takes_red_actions_ && red_actions.empty()) {
    throw std::invalid_argument("red_actions must be given, since red is played from outside");
  }
  if (!takes_red_actions_ && !red_actions.empty()) {
    throw std::invalid_argument(
        "red_actions may be given only if red is `given`; no game's red is");
  }
  if (takes_red_actions_) check(red_actions, kRedActions, "red action");
  if (unstarted_ == 0 && autoreset_ != Autoreset::kDisabled) return;
  for (std::size_t i = 0; i < count; ++i) {
    const Phase phase = games_[static_cast<std::size_t>(id_of(i))].phase;
    if (phase == Phase::kUnstarted) {
      throw std::runtime_error("reset must come before step; game " + std::to_string(id_of(i)) +
                               " has not been reset");
    }
    if (phase == Phase::kOver && autoreset_ == Autoreset::kDisabled) {
      throw std::runtime_error("game " + std::to_string(id_of(i)) +
                               " is over; reset it before the next step");
    }
  }
}

std::size_t Batch::step(std::span<const std::int64_t> actions,
                        std::span<const std::int64_t> red_actions,
                        std::optional<std::span<const std::int64_t>> ids) {
  const Entry entry(*this);
  check_step(actions, red_actions, ids);
  Job all = job();
  if (ids) all.ids = ids->data();
  all.actions = actions.data();
  all.red_actions = red_actions.empty() ? nullptr : red_actions.data();
  const Kernel kernel = kernel_for(all);
  const std::size_t count = actions.size();
  if (!pool_ || count <= kChunk || !pool_->is_of_this_process()) return kernel(all, 0, count);
  std::atomic<std::size_t> ended = 0;
  pool_->run((count + kChunk - 1) / kChunk, [&](std::size_t chunk) {
    ended += kernel(all, chunk * kChunk, std::min(count, (chunk + 1) * kChunk));
  });
  return ended;
}

void Batch::redirect(std::span<float> observations) {
  const Entry entry(*this);
  if (observations.size() != out_.float_observations.size()) {
    throw std::invalid_argument("observations must have the size and type of those they replace");
  }
  out_.float_observations = observations;
}

void Batch::redirect(std::span<std::uint8_t> observations) {
  const Entry entry(*this);
  if (observations.size() != out_.byte_observations.size()) {
    throw std::invalid_argument("observations must have the size and type of those they replace");
  }
  out_.byte_observations = observations;
}

std::vector<std::uint8_t> Batch::save(std::int64_t id) {
  const Entry entry(*this);
  return save_game(job(), checked(id));
}

void Batch::restore(std::span<const std::int64_t> ids, std::span<const Blob> blobs) {
  const Entry entry(*this);
  check_distinct(ids);
  if (ids.size() != blobs.size())
    throw std::invalid_argument(counts("snapshot", blobs.size(), ids.size()));
  const Job all = job();
  std::vector<Snapshot> snapshots;  // all are read before any game changes
  for (const Blob blob : blobs) snapshots.push_back(read_snapshot(all, blob));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<std::size_t>(ids[i]);
    unstarted_ -= games_[id].phase == Phase::kUnstarted;
    restore_game(all, id, snapshots[i]);
    unstarted_ += games_[id].phase == Phase::kUnstarted;
  }
}

Game Batch::game(std::int64_t id) {
  const Entry entry(*this);
  return games_[checked(id)];
}

std::vector<Session> Batch::log(std::int64_t id) {
  const Entry entry(*this);
  const std::size_t index = checked(id);
  if (games_[index].phase == Phase::kUnstarted) return {};
  const Store store = job().store;
  const SessionLog sessions = Slot{store, index}.log();
  return {sessions.begin(), sessions.end()};
}

void Batch::describe(std::span<TraceRow> rows) {
  const Entry entry(*this);
  if (rows.size() != games()) throw std::invalid_argument(counts("row", rows.size(), games()));
  for (std::size_t id = 0; id < games(); ++id) {
    cagepool::describe(games_[id], out_.true_state[id], rows[id]);
  }
}

}  // namespace cagepool
