#include "core/belief.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/enumerated_draws.hpp"
#include "core/snapshot_check.hpp"
#include "core/step.hpp"

namespace cagepool {
namespace {

// Games per chunk of work of a thread.
constexpr std::size_t kChunk = 16;

constexpr std::uint64_t kActivityBits = 0x3333333333333;  // of all hosts in an observation

/// Hosts with activity in an observation.
inline Mask active_hosts(std::uint64_t observation) {
  const std::uint64_t bits = (observation | (observation >> 1)) & 0x1111111111111;
  Mask hosts = 0;
  for (std::uint64_t left = bits; left != 0; left &= left - 1)
    hosts |= bit(std::countr_zero(left) / 4);
  return hosts;
}

/// Call `visit` with each host of a set.
template <class Visitor>
inline void for_each_host(Mask hosts, const Visitor& visit) {
  for (unsigned left = hosts; left != 0; left &= left - 1) visit(std::countr_zero(left));
}

/// Outcome of B_lineAgent's last step that leads to each position; from position 1 on also a
/// position at which the user host is drawn.
struct BLineOutcome {
  Byte position;
  Success success;
};
constexpr auto kOutcomeBefore = [] {
  std::array<BLineOutcome, kBLineSteps.size()> table{};
  for (unsigned next = 0; next < table.size(); ++next) {
    for (unsigned last = kBLineSteps.size(); last-- > 0;) {
      for (const bool succeeded : {false, true}) {
        if (kBLineSteps[last].next[succeeded] != next) continue;
        table[next] = {static_cast<Byte>(last), static_cast<Success>(succeeded)};
      }
    }
  }
  table[1] = {1, Success::kFalse};
  return table;
}();

void reduce_b_line(Game& game) {
  const unsigned next = next_b_line_position(game);
  game.known_ip = bit(kUser0);
  game.known_host = bit(kUser0);
  game.known_nets = static_cast<Byte>(bit(kUserNet));
  game.reached_12 |= next == 12;
  if (game.user_pick == kNoHost) return;  // position 0
  game.position = kOutcomeBefore[next].position;
  game.last_success = kOutcomeBefore[next].success;
}

void reduce_meander(Game& game) {
  update_meander(CompiledScenario{}, game);
  game.last_success = Success::kTrue;  // of no action that it remembers
}

inline std::uint64_t hash_of(const Game& game) {
  std::array<std::uint64_t, sizeof(Game) / 8> words;
  std::memcpy(words.data(), &game, sizeof words);
  std::uint64_t hash = 0;
  for (const std::uint64_t word : words) hash = (std::rotl(hash, 23) ^ word) * kGoldenRatio;
  return hash;
}
static_assert(sizeof(Game) % 8 == 0);

/// One copy of a hypothesis with the parts of a game that the rules need. The session log is made
/// of the masks: at most two sessions on every host but User0, and one that the step opens.
struct Course {
  Game game;
  TrueState true_state;
  std::array<Session, 2 * (kHostCount - 1) + 8> session_log;

  GameStore store() { return {&game, &true_state, session_log.data(), session_log.size()}; }
};

/// Sessions on each host of a set, added to a log; returns its end.
inline Session* add_sessions(Mask hosts, Session flags, Session* end) {
  for_each_host(hosts, [&](int host) {
    *end++ = static_cast<Session>(host | CompiledScenario::Bits::kAlive | flags);
  });
  return end;
}

/// Write the sessions of a reduced game to a log; returns their number.
inline std::size_t write_sessions(const Game& game, Session* log) {
  Session* end = add_sessions(static_cast<Mask>(game.privileged & ~bit(kUser0)),
                              CompiledScenario::Bits::kPrivileged, log);
  end = add_sessions(game.user_seen, CompiledScenario::Bits::kSeen, end);
  end = add_sessions(game.user_unseen, Session{0}, end);
  return static_cast<std::size_t>(end - log);
}

/// Write the start of all courses of a hypothesis. Of the true state, the rules read decoys and
/// numbers of user-level sessions.
inline void write_start(const Game& game, const BeliefState& state, Course& start) {
  start.game = game;
  start.true_state.decoys = state.decoys;
  start.true_state.user_seen = {};
  start.true_state.user_unseen = {};
  for_each_host(game.user_seen,
                [&](int host) { start.true_state.user_seen[static_cast<std::size_t>(host)] = 1; });
  for_each_host(game.user_unseen, [&](int host) {
    start.true_state.user_unseen[static_cast<std::size_t>(host)] = 1;
  });
  start.game.sessions =
      static_cast<std::uint16_t>(1 + write_sessions(game, start.session_log.data()));
}

std::vector<Hypothesis> initial_hypotheses(const BeliefConfig& config) {
  double sum = 0.0;
  for (const double weight : config.prior) {
    if (!(weight >= 0.0 && weight < std::numeric_limits<double>::infinity()))
      throw std::invalid_argument("the weight of a red agent must be a number of at least 0");
    sum += weight;
  }
  if (!(sum > 0.0 && sum < std::numeric_limits<double>::infinity()))
    throw std::invalid_argument("a belief must have a red agent of positive weight");
  std::vector<Hypothesis> initial;
  for (std::size_t red = 0; red < kBelievableReds; ++red) {
    if (config.prior[red] == 0.0) continue;
    Course course{};
    const GameStore store = course.store();
    initialize_game({store, 0}, 0, 0, static_cast<Red>(red), config.edition, config.green);
    initial.push_back({course.game, config.prior[red] / sum});
  }
  return initial;
}

}  // namespace

void reduce(Game& game) {
  game.sessions = 1;
  game.user_seen = static_cast<Mask>(game.user_seen & ~game.privileged);
  game.user_unseen = static_cast<Mask>(game.user_unseen & ~game.privileged);
  if (game.red == Red::kBLine) reduce_b_line(game);
  if (game.red == Red::kMeander) reduce_meander(game);
  game.last_scan_empty = false;  // was read by next_b_line_position
}

/// The hypotheses after a step, before those of small weight are dropped.
struct BeliefFilter::Scratch {
  std::vector<Hypothesis> hypotheses;
  std::vector<std::uint64_t> hashes;
  Course start{};
  Course course{};

  void add(const Game& game, double weight) {
    const std::uint64_t hash = hash_of(game);
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      if (hashes[i] != hash || std::memcmp(&hypotheses[i].game, &game, sizeof game) != 0) continue;
      hypotheses[i].weight += weight;
      return;
    }
    hashes.push_back(hash);
    hypotheses.push_back({game, weight});
  }
};

BeliefFilter::BeliefFilter(std::size_t games, const BeliefConfig& config)
    : config_(config), initial_(initial_hypotheses(config)) {
  const auto check = [](bool holds, const char* sentence, std::size_t value) {
    if (!holds) throw std::invalid_argument(sentence + std::to_string(value));
  };
  check(games >= 1, "a belief filter must have at least 1 game, got ", games);
  check(config.capacity >= initial_.size(),
        "capacity must be at least the number of red agents, got ", config.capacity);
  check(config.threads >= 1, "threads must be at least 1, got ",
        static_cast<std::size_t>(config.threads));
  states_.resize(games);
  hypotheses_.resize(games * config.capacity);
  for (std::size_t game = 0; game < games; ++game) start(game);
  const std::size_t chunks = (games + kChunk - 1) / kChunk;
  const auto threads = std::min(static_cast<std::size_t>(config.threads), chunks);
  if (threads > 1)
    thread_pool_.reset(std::make_unique<ThreadPool>(static_cast<int>(threads)).release());
}

std::size_t BeliefFilter::checked_id(std::int64_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= games()) {
    throw std::out_of_range("a game's index must be below " + std::to_string(games()) + ", got " +
                            std::to_string(id));
  }
  return static_cast<std::size_t>(id);
}

void BeliefFilter::start(std::size_t game) {
  states_[game] = {};
  states_[game].count = static_cast<std::uint32_t>(initial_.size());
  std::ranges::copy(initial_, room(game).begin());
}

void BeliefFilter::reset(std::span<const std::int64_t> ids) {
  const CallGuard lock = guard();
  for (const std::int64_t id : ids) checked_id(id);
  for (const std::int64_t id : ids) {
    const auto game = static_cast<std::size_t>(id);
    past_dropped_ += states_[game].dropped;
    past_dropped_mass_ += states_[game].dropped_mass;
    start(game);
  }
}

void BeliefFilter::update_game(std::size_t game, int action, std::uint64_t observation,
                               Scratch& scratch) {
  BeliefState& state = states_[game];
  const BlueAction& blue = kBlueActions[static_cast<std::size_t>(action)];
  const Mask decoy_host = blue.kind == BlueKind::kDecoy ? bit(blue.host) : Mask{0};
  const Mask active = active_hosts(observation);
  Course& start = scratch.start;
  Course& course = scratch.course;
  const GameStore store = course.store();
  scratch.hypotheses.clear();
  scratch.hashes.clear();
  std::array<std::uint16_t, kHostCount> decoys = state.decoys;
  for (const auto& [hypothesis, weight] : hypotheses(game)) {
    write_start(hypothesis, state, start);
    EnumeratedDraws draws(active, decoy_host);
    do {
      course = start;
      const StepResult step = play_step(Slot{store, 0}, action, {}, draws, IgnoreFixes{});
      if (step.observation != observation || draws.probability() == 0.0) continue;
      reduce(course.game);
      scratch.add(course.game, weight * draws.probability());
      decoys = course.true_state.decoys;
    } while (draws.next_course());
  }
  state.decoys = decoys;
  state.observation = observation;
  ++state.step;
  keep(game, scratch);
}

void BeliefFilter::keep(std::size_t game, Scratch& scratch) {
  BeliefState& state = states_[game];
  std::vector<Hypothesis>& found = scratch.hypotheses;
  const auto sum = [](std::span<const Hypothesis> hypotheses) {
    double total = 0.0;
    for (const Hypothesis& hypothesis : hypotheses) total += hypothesis.weight;
    return total;
  };
  const double evidence = sum(found);
  double kept = evidence;
  if (found.size() > config_.capacity) [[unlikely]] {
    std::ranges::stable_sort(found, std::ranges::greater(), &Hypothesis::weight);
    state.dropped += found.size() - config_.capacity;
    found.resize(config_.capacity);
    kept = sum(found);
    state.dropped_mass += 1.0 - kept / evidence;
  }
  state.log_evidence += std::log(evidence);  // -infinity if nothing fits
  state.count = static_cast<std::uint32_t>(found.size());
  std::ranges::transform(found, room(game).begin(), [kept](const Hypothesis& hypothesis) {
    return Hypothesis{hypothesis.game, hypothesis.weight / kept};
  });
}

void BeliefFilter::update_part(std::span<const std::int64_t> ids,
                               std::span<const std::int64_t> actions,
                               std::span<const std::uint64_t> observations) {
  Scratch scratch;
  std::uint64_t hypotheses = 0;
  std::uint64_t misfits = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto game = static_cast<std::size_t>(ids[i]);
    update_game(game, static_cast<int>(actions[i]), observations[i], scratch);
    hypotheses += states_[game].count;
    misfits += states_[game].count == 0;
  }
  updates_ += ids.size();
  updated_hypotheses_ += hypotheses;
  misfits_ += misfits;
}

void BeliefFilter::update(std::span<const std::int64_t> ids, std::span<const std::int64_t> actions,
                          std::span<const std::uint64_t> observations) {
  const CallGuard lock = guard();
  if (ids.size() != actions.size() || ids.size() != observations.size()) {
    throw std::invalid_argument("there must be one action and one observation per game, got " +
                                std::to_string(actions.size()) + " and " +
                                std::to_string(observations.size()) + " for " +
                                std::to_string(ids.size()) + " games");
  }
  is_named_.assign(games(), 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (std::exchange(is_named_[checked_id(ids[i])], 1) != 0)
      throw std::invalid_argument("each game may be named once, got " + std::to_string(ids[i]) +
                                  " twice");
    if (actions[i] < 0 || actions[i] >= kActionCount)
      throw std::out_of_range("the action of game " + std::to_string(ids[i]) + " must be below " +
                              std::to_string(kActionCount) + ", got " + std::to_string(actions[i]));
  }
  const std::size_t chunks = (ids.size() + kChunk - 1) / kChunk;
  const auto run = [&](std::size_t chunk) {
    const std::size_t first = chunk * kChunk;
    const std::size_t count = std::min(ids.size() - first, kChunk);
    update_part(ids.subspan(first, count), actions.subspan(first, count),
                observations.subspan(first, count));
  };
  if (thread_pool_ && chunks > 1 && thread_pool_->is_of_this_process()) {
    thread_pool_->run(chunks, run);
  } else {
    update_part(ids, actions, observations);
  }
}

BeliefTotals BeliefFilter::totals() const {
  BeliefTotals totals{.updates = updates_,
                      .hypotheses = updated_hypotheses_,
                      .misfits = misfits_,
                      .dropped = past_dropped_,
                      .dropped_mass = past_dropped_mass_};
  for (const BeliefState& state : states_) {
    totals.dropped += state.dropped;
    totals.dropped_mass += state.dropped_mass;
  }
  return totals;
}

double BeliefFilter::probability_of(std::int64_t id, const Snapshot& snapshot) const {
  const CallGuard lock = guard();
  const std::size_t index = checked_id(id);
  const BeliefState& state = states_[index];
  Game game = snapshot.game;
  if (game.step != state.step || game.observation != state.observation ||
      snapshot.true_state.decoys != state.decoys)
    return 0.0;
  game.key = 0;
  game.observation = 0;
  game.return_tenths = 0;
  game.step = 0;
  game.horizon = 0;
  game.phase = Phase::kRunning;
  if (state.step != 0) reduce(game);
  double probability = 0.0;
  for (const auto& [hypothesis, weight] : hypotheses(index)) {
    if (std::memcmp(&hypothesis, &game, sizeof game) == 0) probability += weight;
  }
  return probability;
}

Snapshot BeliefFilter::snapshot_of(const BeliefState& state, const Game& game, std::uint64_t seed,
                                   std::uint16_t horizon) const {
  Snapshot snapshot{};
  std::uint8_t reds = 0;
  for (const Hypothesis& hypothesis : initial_)
    reds = static_cast<std::uint8_t>(reds | bit(static_cast<int>(hypothesis.game.red)));
  snapshot.config = {.seed = seed,
                     .next_episode = 1,
                     .horizon = horizon,
                     .reds = reds,
                     .edition = config_.edition,
                     .red_shares = {},
                     .green = config_.green,
                     .unused = {}};
  snapshot.game = game;
  snapshot.game.key = episode_key(seed, 0);
  snapshot.game.observation = state.observation;
  snapshot.game.step = static_cast<std::uint16_t>(state.step);
  snapshot.game.horizon = horizon;
  snapshot.session_log.resize(Course{}.session_log.size());
  snapshot.session_log.resize(write_sessions(game, snapshot.session_log.data()));
  snapshot.game.sessions = static_cast<std::uint16_t>(1 + snapshot.session_log.size());
  snapshot.order = kNoOrder;
  snapshot.true_state.decoys = state.decoys;
  derive_true_state(snapshot);
  return snapshot;
}

Snapshot BeliefFilter::sample(std::int64_t id, std::uint64_t seed, std::uint16_t horizon) const {
  const CallGuard lock = guard();
  const std::size_t game = checked_id(id);
  const BeliefState& state = states_[game];
  if (state.count == 0)
    throw std::invalid_argument("game " + std::to_string(id) +
                                " has no hypothesis to sample: no red fits its observations");
  if (state.step >= horizon)
    throw std::invalid_argument("the horizon of a sampled game must be above its step " +
                                std::to_string(state.step) + ", got " + std::to_string(horizon));
  const std::span<const Hypothesis> all = hypotheses(game);
  double left = static_cast<double>(random_word(episode_key(seed, 0), 0, 3) >> 11) * 0x1p-53;
  std::size_t chosen = 0;
  while (chosen + 1 < all.size() && left >= all[chosen].weight) left -= all[chosen++].weight;
  return snapshot_of(state, all[chosen].game, seed, horizon);
}

void BeliefFilter::check_state(const BeliefState& state,
                               std::span<const Hypothesis> hypotheses) const {
  const auto check = [](bool holds, const char* part) {
    if (!holds)
      throw std::invalid_argument(
          std::string("a saved belief must be undamaged, got one with impossible ") + part);
  };
  const bool fits = !hypotheses.empty();
  check(state.dropped_mass >= 0.0 && std::isfinite(state.dropped_mass), "dropped mass");
  check(fits ? state.log_evidence < 1e-6 && std::isfinite(state.log_evidence)
             : std::isinf(state.log_evidence),
        "evidence");
  check(state.unused == BeliefState{}.unused, "padding");
  double sum = 0.0;
  for (const auto& [game, weight] : hypotheses) {
    check(weight > 0.0, "weights");
    sum += weight;
    // Before anything reads them: flags and sets, of which `snapshot_of` makes a session log.
    check(has_valid_values(game) && (game.privileged & (game.user_seen | game.user_unseen)) == 0,
          "values");
    check(std::ranges::any_of(initial_,
                              [&](const Hypothesis& h) { return h.game.red == game.red; }) &&
              game.edition == config_.edition && game.phase == Phase::kRunning,
          "red agent, edition or phase");
    const auto step = std::min<std::uint32_t>(state.step, 65534);
    BeliefState at_step = state;
    at_step.step = step;
    check_possible(snapshot_of(at_step, game, 0, static_cast<std::uint16_t>(step + 1)));
    Game reduced = game;
    reduce(reduced);
    check(state.step == 0 || std::memcmp(&reduced, &game, sizeof game) == 0, "state of a game");
  }
  check(!fits || std::abs(sum - 1.0) < 1e-9, "weights");
}

void BeliefFilter::restore(std::span<const BeliefState> states,
                           std::span<const Hypothesis> hypotheses) {
  const CallGuard lock = guard();
  if (states.size() != games())
    throw std::invalid_argument("a saved belief must have " + std::to_string(games()) +
                                " games, got " + std::to_string(states.size()));
  std::size_t begin = 0;
  for (const BeliefState& state : states) {
    if (state.count > config_.capacity || state.count > hypotheses.size() - begin)
      throw std::invalid_argument(
          "a saved belief must have at most `capacity` hypotheses per game, and all of them");
    check_state(state, hypotheses.subspan(begin, state.count));
    begin += state.count;
  }
  if (begin != hypotheses.size())
    throw std::invalid_argument("a saved belief must have no more hypotheses than its games count");
  begin = 0;
  for (std::size_t game = 0; game < games(); ++game) {
    states_[game] = states[game];
    std::ranges::copy(hypotheses.subspan(begin, states[game].count), room(game).begin());
    begin += states[game].count;
  }
}

}  // namespace cagepool
