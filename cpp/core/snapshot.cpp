#include "core/snapshot.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/red.hpp"

namespace cagepool {
namespace {

constexpr std::array<char, 4> kMagic{'C', 'G', 'P', 'L'};
constexpr std::uint32_t kVersion = 1;
constexpr Order kNoOrder = 255;  // compliance was not tracked

struct Header {
  std::array<char, 4> magic;
  std::uint32_t version;
  std::uint64_t checksum;  // of all bytes after the header
};

// The structs are written and compared as bytes, so they may have no padding.
static_assert(std::has_unique_object_representations_v<Header>);
static_assert(std::has_unique_object_representations_v<GameConfig>);
static_assert(std::has_unique_object_representations_v<Game>);
static_assert(std::has_unique_object_representations_v<TrueState>);
static_assert(std::has_unique_object_representations_v<Counters>);
static_assert(std::has_unique_object_representations_v<Moves>);

std::uint64_t checksum(Blob bytes) {
  std::uint64_t sum = bytes.size();
  for (const std::uint8_t byte : bytes) sum = mix_bits(sum ^ byte);
  return sum;
}

template <class Struct>
void append(std::vector<std::uint8_t>& bytes, const Struct& value) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof(Struct));
}

/// Read a struct from the front of `bytes` and remove it from `bytes`.
template <class Struct>
void read_front(Blob& bytes, Struct& value) {
  if (bytes.size() < sizeof(Struct))
    throw std::invalid_argument("a snapshot must be whole, got one that is cut short");
  std::memcpy(&value, bytes.data(), sizeof(Struct));
  bytes = bytes.subspan(sizeof(Struct));
}

/// Whether the byte of a bool is 0 or 1; a damaged one may hold other values.
bool is_flag(const bool& value) { return *reinterpret_cast<const std::uint8_t*>(&value) <= 1; }

/// Whether step, horizon and number of sessions agree.
bool has_valid_time(const Snapshot& snapshot) {
  const Game& game = snapshot.game;
  const std::size_t sessions = snapshot.session_log.size();
  if (game.phase == Phase::kUnstarted) return game.step == 0 && game.sessions == 0 && sessions == 0;
  return game.step + (game.phase == Phase::kRunning) <= game.horizon &&
         game.sessions == sessions + 1 && sessions <= game.step;
}

bool has_valid_enums(const Snapshot& snapshot) {
  const Game& game = snapshot.game;
  const GameConfig& config = snapshot.config;
  return game.phase <= Phase::kOver && game.red <= Red::kGiven &&
         game.edition <= Edition::kLeaderboard && config.edition <= Edition::kLeaderboard &&
         config.reds != 0 && config.reds < 1 << kRedCount && config.horizon != 0 &&
         config.green <= 1 && is_flag(game.ot_pid_known) && is_flag(game.ot_service_known) &&
         is_flag(game.last_scan_empty) && is_flag(game.green) && is_flag(game.reached_12);
}

/// Whether every value that the rules use as an index is in range.
bool has_valid_indices(const Snapshot& snapshot) {
  const Game& game = snapshot.game;
  const Mask hosts = game.privileged | game.user_seen | game.user_unseen | game.malware |
                     game.known_ip | game.known_host | game.scanned | game.exploited |
                     game.escalated | game.mapped | game.last_exploit | game.last_host;
  return (hosts & ~kAllHosts) == 0 && game.known_nets < 1 << kSubnetCount &&
         game.swept < 1 << kSubnetCount && game.position < kBLineSteps.size() &&
         (game.user_pick < 4 || game.user_pick == kNoHost) &&
         std::ranges::all_of(
             snapshot.session_log,
             [](Session session) { return (session & kSessionHost) < kHostCount; }) &&
         (snapshot.order < kOrderCount || snapshot.order == kNoOrder);
}

/// Whether the steps played can give these counts and sums. A step costs less than 200 tenths.
bool has_valid_sums(const Snapshot& snapshot) {
  const Game& game = snapshot.game;
  const Counters& counters = snapshot.counters;
  const auto is_count = [&game](std::int32_t count) {
    return count >= 0 && count <= std::int32_t{game.step};
  };
  return game.return_tenths <= 0 && game.return_tenths >= -200 * game.step &&
         (game.outage_tenths == 0 || game.outage_tenths == kOutageTenths) &&
         is_count(counters.compliant) && is_count(counters.violations) &&
         is_count(counters.wasted) && is_count(counters.fixes) && is_count(counters.threat_steps);
}

bool is_valid(const Snapshot& snapshot) {
  return has_valid_time(snapshot) && has_valid_enums(snapshot) && has_valid_indices(snapshot) &&
         has_valid_sums(snapshot);
}

/// Check that a valid game can be played in the batch.
void check_fits(const BatchView& batch, const Snapshot& snapshot) {
  const bool given = snapshot.game.red == Red::kGiven || (snapshot.config.reds & kGivenRed) != 0;
  if (given && !batch.takes_red_actions) {
    throw std::invalid_argument(
        "a snapshot of a game whose red is given needs a batch whose red is given");
  }
  const std::size_t horizon = std::max(snapshot.config.horizon, snapshot.game.horizon);
  if (horizon > batch.store.session_capacity) {
    throw std::invalid_argument("a snapshot's horizon must be at most the batch's longest, " +
                                std::to_string(batch.store.session_capacity) + ", got " +
                                std::to_string(horizon));
  }
}

}  // namespace

std::vector<std::uint8_t> save_game(const BatchView& batch, std::size_t id) {
  const Slot slot{batch.store, id};
  const SessionLog log = slot.game().sessions == 0 ? SessionLog() : slot.session_log();
  const bool has_order = batch.out.tracks_compliance();
  std::vector<std::uint8_t> bytes;
  bytes.reserve(sizeof(Header) + sizeof(Snapshot) + log.size());
  append(bytes, Header{});
  append(bytes, batch.configs[id]);
  append(bytes, slot.game());
  append(bytes, slot.true_state());
  append(bytes, has_order ? batch.out.counters[id] : Counters{});
  append(bytes, has_order ? batch.out.orders[id] : kNoOrder);
  append(bytes, batch.out.moves[id]);
  bytes.insert(bytes.end(), log.begin(), log.end());
  const Header header{kMagic, kVersion, checksum(Blob(bytes).subspan(sizeof(Header)))};
  std::memcpy(bytes.data(), &header, sizeof(Header));
  return bytes;
}

Snapshot read_snapshot(const BatchView& batch, Blob blob) {
  Header header{};
  read_front(blob, header);
  if (header.magic != kMagic)
    throw std::invalid_argument("a snapshot must be one that `save` made, got other bytes");
  if (header.version != kVersion) {
    throw std::invalid_argument("a snapshot must be of version " + std::to_string(kVersion) +
                                ", got version " + std::to_string(header.version));
  }
  if (header.checksum != checksum(blob)) {
    throw std::invalid_argument("a snapshot must be undamaged, got one whose checksum is wrong");
  }
  Snapshot snapshot{};
  read_front(blob, snapshot.config);
  read_front(blob, snapshot.game);
  read_front(blob, snapshot.true_state);
  read_front(blob, snapshot.counters);
  read_front(blob, snapshot.order);
  read_front(blob, snapshot.moves);
  snapshot.session_log.assign(blob.begin(), blob.end());
  if (!is_valid(snapshot))
    throw std::invalid_argument("a snapshot must hold a possible game, got an impossible one");
  check_fits(batch, snapshot);
  return snapshot;
}

void restore_game(const BatchView& batch, std::size_t id, const Snapshot& snapshot) {
  const Slot slot{batch.store, id};
  batch.configs[id] = snapshot.config;
  slot.game() = snapshot.game;
  slot.true_state() = snapshot.true_state;
  if (!snapshot.session_log.empty())
    std::ranges::copy(snapshot.session_log, slot.session_log().begin());
  write_observation(batch, id, snapshot.game.observation);
  batch.out.moves[id] = snapshot.moves;
  batch.out.rewards[id] = 0.0;
  batch.out.truncations[id] = false;
  if (!batch.out.tracks_compliance()) return;
  batch.out.counters[id] = snapshot.counters;
  if (snapshot.order != kNoOrder) batch.out.orders[id] = snapshot.order;
  batch.out.alignment[id] = 0.0;
}

}  // namespace cagepool
