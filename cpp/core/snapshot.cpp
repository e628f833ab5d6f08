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
constexpr Order kNoOrder = 255;  // the game was not judged

struct Header {
  std::array<char, 4> magic;
  std::uint32_t version;
  std::uint64_t checksum;  // of all that follows
};

// Bytes are written and compared as they stand, so no part may have padding.
static_assert(std::has_unique_object_representations_v<Header>);
static_assert(std::has_unique_object_representations_v<Setting>);
static_assert(std::has_unique_object_representations_v<Game>);
static_assert(std::has_unique_object_representations_v<TrueState>);
static_assert(std::has_unique_object_representations_v<Counters>);
static_assert(std::has_unique_object_representations_v<Moves>);

std::uint64_t checksum(Blob bytes) {
  std::uint64_t sum = bytes.size();
  for (const std::uint8_t byte : bytes) sum = mix(sum ^ byte);
  return sum;
}

template <class Part>
void append(std::vector<std::uint8_t>& bytes, const Part& part) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(&part);
  bytes.insert(bytes.end(), first, first + sizeof(Part));
}

template <class Part>
void take(Blob& bytes, Part& part) {
  if (bytes.size() < sizeof(Part))
    throw std::invalid_argument("a snapshot must be whole, got one that is cut short");
  std::memcpy(&part, bytes.data(), sizeof(Part));
  bytes = bytes.subspan(sizeof(Part));
}

/// Looks at the byte: a damaged one is no bool yet.
bool is_flag(const bool& value) { return *reinterpret_cast<const std::uint8_t*>(&value) <= 1; }

/// Whether the parts fit together and every value that the rules use as an index, a size or a flag
/// is one they can have.
bool is_sound(const Snapshot& snapshot) {
  const Game& game = snapshot.game;
  const Setting& setting = snapshot.setting;
  const Mask hosts = game.privileged | game.user_seen | game.user_unseen | game.malware |
                     game.known_ip | game.known_host | game.scanned | game.exploited |
                     game.escalated | game.mapped | game.last_exploit | game.last_host;
  const std::size_t sessions = snapshot.log.size();
  const bool time = game.phase == Phase::kUnstarted
                        ? game.step == 0 && game.sessions == 0 && sessions == 0
                        : game.step + (game.phase == Phase::kRunning) <= game.horizon &&
                              game.sessions == sessions + 1 && sessions <= game.step;
  const bool flags = is_flag(game.ot_pid_known) && is_flag(game.ot_service_known) &&
                     is_flag(game.last_scan_empty) && is_flag(game.green) &&
                     is_flag(game.reached_12) && is_flag(setting.green);
  const bool kinds = game.phase <= Phase::kOver && game.red <= Red::kGiven &&
                     game.edition <= Edition::kLeaderboard &&
                     setting.edition <= Edition::kLeaderboard && setting.reds != 0 &&
                     setting.reds < 1 << kReds && setting.horizon != 0;
  const bool places =
      (hosts & ~kAllHosts) == 0 && game.known_nets < 1 << kSubnets && game.swept < 1 << kSubnets &&
      game.position < kBLine.size() && (game.user_pick < 4 || game.user_pick == kNoHost) &&
      std::ranges::all_of(
          snapshot.log, [](Session session) { return (session & kSessionHost) < kHosts; });
  // Counts and sums are ones that so many steps can reach; no step costs as much as 200 tenths.
  const auto is_count = [&game](std::int32_t count) {
    return count >= 0 && count <= std::int32_t{game.step};
  };
  const Counters& counters = snapshot.counters;
  const bool sums = game.return_tenths <= 0 && game.return_tenths >= -200 * game.step &&
                    (game.outage_tenths == 0 || game.outage_tenths == kOutageTenths) &&
                    is_count(counters.compliant) && is_count(counters.violations) &&
                    is_count(counters.wasted) && is_count(counters.fixes) &&
                    is_count(counters.threat_steps);
  const bool order = snapshot.order < kOrders || snapshot.order == kNoOrder;
  return time && flags && kinds && places && sums && order;
}

}  // namespace

std::vector<std::uint8_t> save_game(const Job& job, std::size_t id) {
  const Slot slot{job.store, id};
  const SessionLog log = slot.game().sessions == 0 ? SessionLog() : slot.log();
  const bool judged = !job.out.counters.empty();
  std::vector<std::uint8_t> bytes;
  bytes.reserve(sizeof(Header) + sizeof(Snapshot) + log.size());
  append(bytes, Header{});
  append(bytes, job.settings[id]);
  append(bytes, slot.game());
  append(bytes, slot.truth());
  append(bytes, judged ? job.out.counters[id] : Counters{});
  append(bytes, judged ? job.out.orders[id] : kNoOrder);
  append(bytes, job.out.moves[id]);
  bytes.insert(bytes.end(), log.begin(), log.end());
  const Header header{kMagic, kVersion, checksum(Blob(bytes).subspan(sizeof(Header)))};
  std::memcpy(bytes.data(), &header, sizeof(Header));
  return bytes;
}

Snapshot read_snapshot(const Job& job, Blob blob) {
  Header header{};
  take(blob, header);
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
  take(blob, snapshot.setting);
  take(blob, snapshot.game);
  take(blob, snapshot.truth);
  take(blob, snapshot.counters);
  take(blob, snapshot.order);
  take(blob, snapshot.moves);
  snapshot.log.assign(blob.begin(), blob.end());
  if (!is_sound(snapshot))
    throw std::invalid_argument("a snapshot must hold a possible game, got an impossible one");
  const bool given = snapshot.game.red == Red::kGiven || (snapshot.setting.reds & kGivenRed) != 0;
  if (given && !job.takes_red_actions) {
    throw std::invalid_argument(
        "a snapshot of a game whose red is given needs a batch whose red is given");
  }
  const std::size_t horizon = std::max(snapshot.setting.horizon, snapshot.game.horizon);
  if (horizon > job.store.log_size) {
    throw std::invalid_argument("a snapshot's horizon must be at most the batch's longest, " +
                                std::to_string(job.store.log_size) + ", got " +
                                std::to_string(horizon));
  }
  return snapshot;
}

void restore_game(const Job& job, std::size_t id, const Snapshot& snapshot) {
  const Slot slot{job.store, id};
  job.settings[id] = snapshot.setting;
  slot.game() = snapshot.game;
  slot.truth() = snapshot.truth;
  if (!snapshot.log.empty()) std::ranges::copy(snapshot.log, slot.log().begin());
  show(job, id, snapshot.game.observation);
  job.out.moves[id] = snapshot.moves;
  job.out.rewards[id] = 0.0;
  job.out.truncations[id] = false;
  if (job.out.counters.empty()) return;
  job.out.counters[id] = snapshot.counters;
  if (snapshot.order != kNoOrder) job.out.orders[id] = snapshot.order;
  job.out.alignment[id] = 0.0;
}

}  // namespace cagepool
