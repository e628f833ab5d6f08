#include "core/snapshot.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/red.hpp"
#include "core/sessions.hpp"

namespace cagepool {
namespace {

constexpr std::array<char, 4> kMagic{'C', 'G', 'P', 'L'};
constexpr std::uint32_t kVersion = 1;

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

/// Write structs one after the other.
template <class... Structs>
void write_structs(std::uint8_t* out, const Structs&... values) {
  ((std::memcpy(out, &values, sizeof(Structs)), out += sizeof(Structs)), ...);
}

/// Read a struct from the front of `bytes` and remove it from `bytes`.
template <class Struct>
void read_front(Blob& bytes, Struct& value) {
  if (bytes.size() < sizeof(Struct))
    throw std::invalid_argument("a snapshot must be whole, got one that is cut short");
  std::memcpy(&value, bytes.data(), sizeof(Struct));
  bytes = bytes.subspan(sizeof(Struct));
}

// A snapshot may come from a stranger: its checksum shows damage, not intent. The checks below
// accept what a game can reach, as far as a single state shows it. The rules rely on this: they use
// fields as indices and shifts without a check, and no counter overflows in the rest of the game.

template <class Struct>
bool same_bytes(const Struct& a, const Struct& b) {
  return std::memcmp(&a, &b, sizeof(Struct)) == 0;
}

template <class Enum>
bool is_within(Enum value, Enum first, Enum last) {
  const auto number = static_cast<int>(value);
  return number >= static_cast<int>(first) && number <= static_cast<int>(last);
}

/// Whether the byte of a bool is 0 or 1; a damaged one may hold other values.
bool is_flag(const bool& value) { return *reinterpret_cast<const std::uint8_t*>(&value) <= 1; }

bool has_valid_settings(const Snapshot& snapshot) {
  const GameConfig& config = snapshot.config;
  return config.reds != 0 && config.reds < 1 << kRedCount && config.horizon != 0 &&
         config.edition <= Edition::kLeaderboard && config.green <= 1 && config.unused == 0 &&
         std::ranges::is_sorted(config.red_shares);
}

/// A game that was never reset has only a random stream.
bool is_unstarted(const Snapshot& snapshot) {
  Game game{};
  game.key = snapshot.game.key;
  return same_bytes(game, snapshot.game) && same_bytes(TrueState{}, snapshot.true_state) &&
         snapshot.session_log.empty();
}

/// A game before its first step is as `initialize_game` makes it.
bool is_initial(const Snapshot& snapshot) {
  Snapshot initial{};
  const GameStore store{&initial.game, &initial.true_state, nullptr, 0};
  const Game& game = snapshot.game;
  initialize_game({store, 0}, game.key, game.horizon, game.red, game.edition, game.green);
  return same_bytes(initial.game, game) && same_bytes(initial.true_state, snapshot.true_state);
}

/// Whether step, horizon and number of sessions agree. The first step opens no session, since red
/// knows no port, and each later step at most one: with the longest horizon, the number of sessions
/// just fits its type.
bool has_valid_time(const Snapshot& snapshot) {
  const Game& game = snapshot.game;
  const std::size_t sessions = snapshot.session_log.size();
  const bool is_over = game.phase == Phase::kOver;
  return game.sessions == sessions + 1 && sessions <= std::max<std::size_t>(game.step, 1) - 1 &&
         (is_over ? game.step == game.horizon : game.step < game.horizon) &&
         (game.step != 0 || is_initial(snapshot));
}

bool has_valid_enums(const Snapshot& snapshot) {
  const Game& game = snapshot.game;
  const GameConfig& config = snapshot.config;
  return has_valid_values(game) && game.phase != Phase::kUnstarted &&
         game.horizon == config.horizon && (config.reds & bit(static_cast<int>(game.red))) != 0 &&
         game.edition == config.edition && game.green == (config.green != 0) &&
         game.unused == Game{}.unused;
}

/// Decoys that can ever be placed on a host, as bits.
constexpr std::array<Byte, kHostCount> kPossibleDecoys = [] {
  std::array<Byte, kHostCount> decoys{};
  for (const BlueAction& action : kBlueActions) decoys[action.host] |= action.decoy_bit;
  return decoys;
}();
constexpr unsigned kVsftpd = 1u << (kDecoyCount - 1);  // the only decoy that can be placed twice

bool has_valid_decoys(const Snapshot& snapshot) {
  for (std::size_t host = 0; host < kHostCount; ++host) {
    const unsigned decoys = snapshot.true_state.decoys[host];
    const unsigned duplicates = decoys >> 8;
    if ((decoys & 255u & ~unsigned{kPossibleDecoys[host]}) != 0) return false;
    if (duplicates != 0 && ((decoys & kVsftpd) == 0 || duplicates >= snapshot.game.step))
      return false;
  }
  return true;
}

/// Whether red knows what it knew at the start, nothing that does not exist, and of a host either
/// no port or all genuine ones, perhaps with those of decoys.
bool has_valid_knowledge(const Snapshot& snapshot) {
  const Game& game = snapshot.game;
  const Mask hosts = game.malware | game.known_ip | game.known_host;
  if ((hosts & ~kAllHosts) != 0 || game.known_nets >= 1 << kSubnetCount) return false;
  if ((game.known_ip & game.known_host & bit(kUser0)) == 0 || !(game.known_nets & bit(kUserNet)))
    return false;
  for (std::size_t host = 0; host < kHostCount; ++host) {
    const unsigned ports = game.red_ports[host];
    const unsigned genuine = kHostFacts[host].listening;
    const unsigned possible = genuine | kPortsOfDecoys[kPossibleDecoys[host]];
    if (ports != 0 && ((ports & genuine) != genuine || (ports & ~possible) != 0)) return false;
  }
  return game.mail_immune < 4 && (game.mail_immune == 0 || game.edition == Edition::kLeaderboard) &&
         (game.outage_tenths == 0 || game.outage_tenths == kOutageTenths);
}

/// Whether each red agent has a state of its own only. B_lineAgent draws its user host when it
/// leaves position 0.
bool has_valid_red(const Snapshot& snapshot) {
  const Game& game = snapshot.game;
  const Mask lists = game.scanned | game.exploited | game.escalated | game.mapped |
                     game.last_exploit | game.last_host;
  const bool is_meander = game.red == Red::kMeander;
  const bool is_b_line = game.red == Red::kBLine;
  if ((lists & ~(is_meander ? kAllHosts : 0)) != 0) return false;
  if ((game.swept & ~(is_meander ? game.known_nets : 0)) != 0) return false;
  if (is_b_line && game.position != 0)
    return game.position < kBLineSteps.size() && game.user_pick < kUserHost.size();
  return game.position == 0 && game.user_pick == kNoHost && !game.reached_12;
}

/// Whether the observation is blue's table with the activity (none, scan or exploit) of at most two
/// hosts: one of red's, one of green's.
bool has_valid_observation(const Snapshot& snapshot) {
  constexpr std::uint64_t kLow = 0x1111111111111;  // one bit per host
  const std::uint64_t observation = snapshot.game.observation;
  const std::uint64_t first = observation & kLow;
  const std::uint64_t second = (observation >> 1) & kLow;
  return (observation & ~(kLow * 3)) == snapshot.game.blue_table &&
         (snapshot.game.blue_table & ~(kLow * 12)) == 0 && (second & ~first) == 0 &&
         std::popcount(first) <= 2;
}

/// Whether masks, counts and the exported state follow from the session log and the game.
bool has_valid_sessions(const Snapshot& snapshot) {
  const auto is_on_host = [](Session session) { return (session & kSessionHost) < kHostCount; };
  if (!std::ranges::all_of(snapshot.session_log, is_on_host)) return false;
  Snapshot derived = snapshot;
  derive_true_state(derived);
  return same_bytes(derived.game, snapshot.game) &&
         same_bytes(derived.true_state, snapshot.true_state) &&
         ((derived.game.privileged | derived.game.user_seen | derived.game.user_unseen) &
          ~kAllHosts) == 0;
}

/// Whether the steps played can give these counts and sums. A step costs less than 200 tenths.
bool has_valid_sums(const Snapshot& snapshot) {
  const Game& game = snapshot.game;
  const Counters& counters = snapshot.counters;
  const std::int32_t steps = game.step;
  const auto is_count = [](std::int32_t count, std::int32_t limit) {
    return count >= 0 && count <= limit;
  };
  if (snapshot.order == kNoOrder && !same_bytes(counters, Counters{})) return false;
  return (snapshot.order < kOrderCount || snapshot.order == kNoOrder) && game.return_tenths <= 0 &&
         game.return_tenths >= -200 * steps && is_count(counters.fixes, steps) &&
         is_count(counters.threat_steps, steps) && is_count(counters.wasted, counters.fixes) &&
         is_count(counters.compliant, counters.fixes) &&
         is_count(counters.violations, counters.fixes - counters.compliant);
}

/// Moves of the last step, which after a reset in the same step belong to the episode before.
bool has_valid_moves(const Snapshot& snapshot) {
  const Moves& moves = snapshot.moves;
  const auto is_draw = [](int value, int limit) { return value >= -1 && value < limit; };
  return moves.blue_action < kActionCount &&
         is_within(moves.blue_success, Success::kUnknown, Success::kTrue) &&
         is_within(moves.red_kind, RedKind::kSleep, RedKind::kImpact) &&
         is_within(moves.red_success, Success::kUnknown, Success::kTrue) &&
         is_draw(moves.red_target, moves.red_kind == RedKind::kSweep ? kSubnetCount : kHostCount) &&
         is_draw(moves.exploit, kExploitCount) && is_draw(moves.detected, 2) &&
         is_draw(moves.green_host, kHostCount);
}

/// Check that a valid game can be played in the batch.
void check_fits(const BatchView& batch, const Snapshot& snapshot) {
  const bool given = snapshot.game.red == Red::kGiven || (snapshot.config.reds & kGivenRed) != 0;
  if (given && !batch.takes_red_actions) {
    throw std::invalid_argument(
        "a snapshot of a game whose red is given needs a batch whose red is given");
  }
  const std::size_t horizon = snapshot.config.horizon;
  if (horizon > batch.store.session_capacity) {
    throw std::invalid_argument("a snapshot's horizon must be at most the batch's longest, " +
                                std::to_string(batch.store.session_capacity) + ", got " +
                                std::to_string(horizon));
  }
}

}  // namespace

bool has_valid_values(const Game& game) {
  const Mask hosts = game.privileged | game.user_seen | game.user_unseen;
  return is_within(game.phase, Phase::kUnstarted, Phase::kOver) &&
         is_within(game.red, Red::kBLine, Red::kGiven) && game.edition <= Edition::kLeaderboard &&
         is_within(game.last_success, Success::kUnknown, Success::kTrue) &&
         is_flag(game.ot_pid_known) && is_flag(game.ot_service_known) &&
         is_flag(game.last_scan_empty) && is_flag(game.reached_12) && is_flag(game.green) &&
         (hosts & ~kAllHosts) == 0;
}

void check_possible(const Snapshot& snapshot) {
  const auto check = [&snapshot](bool (*is_valid)(const Snapshot&), const char* part) {
    if (is_valid(snapshot)) return;
    throw std::invalid_argument(
        std::string("a snapshot must hold a possible game, got one with impossible ") + part);
  };
  check(has_valid_settings, "settings");
  check(has_valid_moves, "moves");
  check(has_valid_sums, "sums");
  if (snapshot.game.phase == Phase::kUnstarted)
    return check(is_unstarted, "state before the first reset");
  check(has_valid_enums, "values");
  check(has_valid_time, "time or number of sessions");
  check(has_valid_knowledge, "knowledge of red");
  check(has_valid_red, "state of the red agent");
  check(has_valid_observation, "observation");
  check(has_valid_decoys, "decoys");
  check(has_valid_sessions, "sessions");
}

void derive_true_state(Snapshot& snapshot) {
  Game& game = snapshot.game;
  TrueState& state = snapshot.true_state;
  const GameStore store{&game, &state, snapshot.session_log.data(), snapshot.session_log.size()};
  for (int host = 0; host < kHostCount; ++host) {
    const auto h = static_cast<std::size_t>(host);
    recount_sessions({store, 0}, host);
    state.malware[h] = (game.malware >> host) & 1;
    state.compromised[h] = static_cast<Byte>(compromised(game, host));
  }
  state.ot_running = game.outage_tenths == 0;
  state.ot_pid_known = game.ot_pid_known;
  state.ot_service_known = game.ot_service_known;
  state.mail_immune = game.mail_immune;
  state.red = game.red;
  state.edition = game.edition;
}

std::vector<std::uint8_t> to_bytes(const Snapshot& snapshot) {
  const auto& [config, game, true_state, counters, order, moves, session_log] = snapshot;
  // On the stack: GCC takes writes to a vector of computed size for overflows.
  std::array<std::uint8_t, sizeof(Header) + sizeof(config) + sizeof(game) + sizeof(true_state) +
                               sizeof(counters) + sizeof(order) + sizeof(moves)>
      structs{};
  write_structs(&structs[sizeof(Header)], config, game, true_state, counters, order, moves);
  std::vector<std::uint8_t> bytes(structs.size() + session_log.size());
  std::ranges::copy(session_log, std::ranges::copy(structs, bytes.begin()).out);
  const Header header{kMagic, kVersion, checksum(Blob(bytes).subspan(sizeof(Header)))};
  std::memcpy(bytes.data(), &header, sizeof(Header));
  return bytes;
}

std::vector<std::uint8_t> save_game(const BatchView& batch, std::size_t id) {
  const Slot slot{batch.store, id};
  const SessionLog log = slot.game().sessions == 0 ? SessionLog() : slot.session_log();
  const bool has_order = batch.out.tracks_compliance();
  return to_bytes({.config = batch.configs[id],
                   .game = slot.game(),
                   .true_state = slot.true_state(),
                   .counters = has_order ? batch.out.counters[id] : Counters{},
                   .order = has_order ? batch.out.orders[id] : kNoOrder,
                   .moves = batch.out.moves[id],
                   .session_log = {log.begin(), log.end()}});
}

Snapshot read_snapshot(Blob blob) {
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
  check_possible(snapshot);
  return snapshot;
}

Snapshot read_snapshot(const BatchView& batch, Blob blob) {
  Snapshot snapshot = read_snapshot(blob);
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
