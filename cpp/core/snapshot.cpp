#include "core/snapshot.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/snapshot_check.hpp"

namespace cagepool {
namespace {

/// First bytes of a snapshot: of Scenario2, of any scenario.
template <class Scenario>
constexpr std::array<char, 4> kMagic{'C', 'G', 'P', Scenario::kIsTable ? 'N' : 'L'};
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
static_assert(std::has_unique_object_representations_v<WideGame>);
static_assert(std::has_unique_object_representations_v<WideTrueState>);

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

void check_scenario(const BatchView& /*batch*/, const Snapshot& /*snapshot*/) {}
void check_scenario(const BasicBatchView<TableScenario>& batch,
                    const BasicSnapshot<TableScenario>& snapshot) {
  const std::span<const ScenarioTables> tables = batch.store.scenarios.tables;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (!batch.draws_scenarios && i != snapshot.game.scenario) continue;
    if ((snapshot.config.reds & ~tables[i].playable_reds) == 0) continue;
    throw std::invalid_argument(
        "a snapshot's red agents must be able to play the scenarios of the "
        "batch; one cannot play scenario " +
        std::to_string(i));
  }
}

/// Check that a valid game can be played in the batch.
template <class Scenario>
void check_fits(const BasicBatchView<Scenario>& batch, const BasicSnapshot<Scenario>& snapshot) {
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
  check_scenario(batch, snapshot);
}

/// What bytes have in place of what depends on the batch: the scenario's hash, and blue's action by
/// kind and host.
struct WideIdentity {
  std::array<Byte, 16> hash;
  std::uint16_t blue_action;
};
constexpr std::uint16_t kNoAction = 0xFFFF;

std::uint16_t action_code(const TableScenario& scenario, const LayoutAction& action) {
  const bool has_host = action.kind > BlueKind::kMonitor;
  const unsigned host = has_host ? scenario.tables().host_of_slot[action.slot] : 0u;
  if (host == kNoHost) return kNoAction;
  return static_cast<std::uint16_t>(
      static_cast<unsigned>(kind_bit(action.kind, action.decoy)) * kMaxHosts + host);
}

/// Take out of a snapshot what depends on the batch.
WideIdentity take_identity(const TableScenario::Scenarios& scenarios,
                           BasicSnapshot<TableScenario>& snapshot) {
  const TableScenario scenario = TableScenario::of(scenarios, snapshot.game);
  const WideIdentity identity{scenario.tables().hash,
                              action_code(scenario, scenarios.actions[snapshot.moves.blue_action])};
  snapshot.game.scenario = 0;
  snapshot.true_state.scenario = 0;
  snapshot.moves.blue_action = 0;
  return identity;
}

/// Put it back for a batch with these scenarios. A last action that the batch lacks becomes index
/// 0.
void put_identity(const TableScenario::Scenarios& scenarios, const WideIdentity& identity,
                  BasicSnapshot<TableScenario>& snapshot) {
  const auto found = std::ranges::find(scenarios.tables, identity.hash, &ScenarioTables::hash);
  if (found == scenarios.tables.end()) {
    throw std::invalid_argument(
        "a snapshot must be of a scenario of this batch, got another one's");
  }
  const auto index = static_cast<std::uint32_t>(found - scenarios.tables.begin());
  snapshot.game.scenario = index;
  snapshot.true_state.scenario =
      static_cast<std::uint16_t>(snapshot.game.phase == Phase::kUnstarted ? 0 : index);
  const TableScenario scenario(*found, scenarios.actions);
  for (std::size_t i = 0; i < scenarios.actions.size(); ++i) {
    if (action_code(scenario, scenarios.actions[i]) == identity.blue_action)
      snapshot.moves.blue_action = static_cast<std::uint32_t>(i);
  }
}

/// Bytes of a snapshot, after the parts that depend on the batch.
template <class Scenario, class... Identity>
std::vector<std::uint8_t> serialize(const BasicSnapshot<Scenario>& snapshot,
                                    const Identity&... identity) {
  const auto& [config, game, true_state, counters, order, moves, session_log] = snapshot;
  // On the stack: GCC takes writes to a vector of computed size for overflows.
  std::array<std::uint8_t, sizeof(Header) + (sizeof(identity) + ... + 0) + sizeof(config) +
                               sizeof(game) + sizeof(true_state) + sizeof(counters) +
                               sizeof(order) + sizeof(moves)>
      structs{};
  write_structs(&structs[sizeof(Header)], identity..., config, game, true_state, counters, order,
                moves);
  const auto log = std::as_bytes(std::span(session_log));
  std::vector<std::uint8_t> bytes(structs.size() + log.size());
  const auto end = std::ranges::copy(structs, bytes.begin()).out;
  std::ranges::transform(log, end,
                         [](std::byte value) { return std::to_integer<std::uint8_t>(value); });
  const Header header{kMagic<Scenario>, kVersion, checksum(Blob(bytes).subspan(sizeof(Header)))};
  std::memcpy(bytes.data(), &header, sizeof(Header));
  return bytes;
}

/// Check the header and remove it.
template <class Scenario>
Blob without_header(Blob blob) {
  Header header{};
  read_front(blob, header);
  if (header.magic ==
      kMagic<std::conditional_t<Scenario::kIsTable, CompiledScenario, TableScenario>>) {
    throw std::invalid_argument(
        Scenario::kIsTable ? "a snapshot must be of a batch of scenarios, got one of CAGE-2 alone"
                           : "a snapshot must be of CAGE-2 alone, got one of a batch of scenarios");
  }
  if (header.magic != kMagic<Scenario>)
    throw std::invalid_argument("a snapshot must be one that `save` made, got other bytes");
  if (header.version != kVersion) {
    throw std::invalid_argument("a snapshot must be of version " + std::to_string(kVersion) +
                                ", got version " + std::to_string(header.version));
  }
  if (header.checksum != checksum(blob)) {
    throw std::invalid_argument("a snapshot must be undamaged, got one whose checksum is wrong");
  }
  return blob;
}

template <class Scenario>
BasicSnapshot<Scenario> read_structs(Blob blob) {
  BasicSnapshot<Scenario> snapshot{};
  read_front(blob, snapshot.config);
  read_front(blob, snapshot.game);
  read_front(blob, snapshot.true_state);
  read_front(blob, snapshot.counters);
  read_front(blob, snapshot.order);
  read_front(blob, snapshot.moves);
  using Session = typename Scenario::Session;
  if (blob.size() % sizeof(Session) != 0)
    throw std::invalid_argument("a snapshot must be whole, got one that is cut short");
  snapshot.session_log.resize(blob.size() / sizeof(Session));
  if (!blob.empty()) std::memcpy(snapshot.session_log.data(), blob.data(), blob.size());
  return snapshot;
}

Snapshot read_own(const CompiledScenario::Scenarios& /*scenarios*/, Blob blob) {
  return read_snapshot(blob);
}
BasicSnapshot<TableScenario> read_own(const TableScenario::Scenarios& scenarios, Blob blob) {
  blob = without_header<TableScenario>(blob);
  WideIdentity identity{};
  read_front(blob, identity);
  BasicSnapshot<TableScenario> snapshot = read_structs<TableScenario>(blob);
  if (snapshot.game.scenario != 0 || snapshot.true_state.scenario != 0)
    throw std::invalid_argument("a snapshot must be one that `save` made, got other bytes");
  put_identity(scenarios, identity, snapshot);
  check_snapshot(scenarios, snapshot);
  return snapshot;
}

std::vector<std::uint8_t> write_own(const CompiledScenario::Scenarios& /*scenarios*/,
                                    const Snapshot& snapshot) {
  return to_bytes(snapshot);
}
std::vector<std::uint8_t> write_own(const TableScenario::Scenarios& scenarios,
                                    BasicSnapshot<TableScenario> snapshot) {
  const WideIdentity identity = take_identity(scenarios, snapshot);
  return serialize(snapshot, identity);
}

}  // namespace

std::vector<std::uint8_t> to_bytes(const Snapshot& snapshot) { return serialize(snapshot); }

template <class Scenario>
std::vector<std::uint8_t> save_game(const BasicBatchView<Scenario>& batch, std::size_t id) {
  const BasicSlot<Scenario> slot{batch.store, id};
  const bool is_started = slot.game().sessions != 0;
  const auto log = is_started ? slot.session_log() : typename BasicSlot<Scenario>::Log();
  const bool has_order = batch.out.tracks_compliance();
  return write_own(batch.store.scenarios,
                   {.config = batch.configs[id],
                    .game = slot.game(),
                    .true_state = slot.true_state(),
                    .counters = has_order ? batch.out.counters[id] : Counters{},
                    .order = has_order ? batch.out.orders[id] : kNoOrder,
                    .moves = batch.out.moves[id],
                    .session_log = {log.begin(), log.end()}});
}

Snapshot read_snapshot(Blob blob) {
  Snapshot snapshot = read_structs<CompiledScenario>(without_header<CompiledScenario>(blob));
  check_possible(snapshot);
  return snapshot;
}

template <class Scenario>
BasicSnapshot<Scenario> read_snapshot(const BasicBatchView<Scenario>& batch, Blob blob) {
  BasicSnapshot<Scenario> snapshot = read_own(batch.store.scenarios, blob);
  check_fits(batch, snapshot);
  return snapshot;
}

template <class Scenario>
void restore_game(const BasicBatchView<Scenario>& batch, std::size_t id,
                  const BasicSnapshot<Scenario>& snapshot) {
  const BasicSlot<Scenario> slot{batch.store, id};
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

template std::vector<std::uint8_t> save_game(const BasicBatchView<CompiledScenario>&, std::size_t);
template std::vector<std::uint8_t> save_game(const BasicBatchView<TableScenario>&, std::size_t);
template BasicSnapshot<CompiledScenario> read_snapshot(const BasicBatchView<CompiledScenario>&,
                                                       Blob);
template BasicSnapshot<TableScenario> read_snapshot(const BasicBatchView<TableScenario>&, Blob);
template void restore_game(const BasicBatchView<CompiledScenario>&, std::size_t,
                           const BasicSnapshot<CompiledScenario>&);
template void restore_game(const BasicBatchView<TableScenario>&, std::size_t,
                           const BasicSnapshot<TableScenario>&);

}  // namespace cagepool
