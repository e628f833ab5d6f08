#include "policy/true_state_features.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/red.hpp"

namespace cagepool {
namespace {

/// Eight floats, 0 or 1, by the bits of a byte.
constexpr auto kFloatsOfByte = [] {
  std::array<std::array<float, 8>, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (unsigned i = 0; i < 8; ++i) table[byte][i] = static_cast<float>((byte >> i) & 1u);
  }
  return table;
}();

/// A decoy that can stand on a host.
struct PossibleDecoy {
  Byte host;
  Byte decoy_bit;
  Ports port;
};

/// Decoys that can stand on the hosts that red can reach and lose.
const std::vector<PossibleDecoy>& possible_decoys() {
  static const std::vector<PossibleDecoy> decoys = [] {
    std::vector<PossibleDecoy> result;
    for (const BlueAction& action : kBlueActions) {
      if (action.decoy_bit == 0 || action.host == kDefender || action.host == kUser0) continue;
      result.push_back({action.host, action.decoy_bit, kDecoyPort[action.decoy]});
    }
    return result;
  }();
  return decoys;
}

constexpr std::size_t kHostMasks = 13;
constexpr std::size_t kFlags = 11;

/// Appends values to a row of features.
class Writer {
 public:
  explicit Writer(float* out) : out_(out) {}

  void add(float value) { *out_++ = value; }
  void add_bits(unsigned bits, std::size_t count) {
    for (std::size_t done = 0; done < count; done += 8) {
      const std::size_t part = std::min<std::size_t>(8, count - done);
      std::memcpy(out_, kFloatsOfByte[(bits >> done) & 255u].data(), part * sizeof(float));
      out_ += part;
    }
  }
  /// One-hot; all 0 if there is no `index`.
  void add_one_of(unsigned index, std::size_t count, bool exists) {
    add_bits(exists ? 1u << index : 0u, count);
  }

 private:
  float* out_;
};

Mask scanned_hosts(const Game& game) {
  unsigned hosts = 0;
  for (unsigned host = 0; host < kHostCount; ++host)
    hosts |= unsigned{game.red_ports[host] != 0} << host;
  return static_cast<Mask>(hosts);
}

}  // namespace

std::size_t true_state_feature_count() {
  return kHostMasks * kHostCount + 2 * possible_decoys().size() + std::size_t{2} * kSubnetCount +
         kFlags + kRedCount + kBLineSteps.size() + kUserHost.size();
}

void write_true_state_features(const Game& game, const TrueState& true_state,
                               std::span<float> features) {
  Writer writer(features.data());
  const std::array<Mask, kHostMasks> masks{
      game.privileged, game.user_seen,      game.user_unseen, game.malware,   game.known_ip,
      game.known_host, scanned_hosts(game), game.scanned,     game.exploited, game.escalated,
      game.mapped,     game.last_exploit,   game.last_host};
  for (const Mask hosts : masks) writer.add_bits(hosts, kHostCount);
  for (const PossibleDecoy& decoy : possible_decoys()) {
    writer.add((true_state.decoys[decoy.host] & decoy.decoy_bit) != 0 ? 1.0F : 0.0F);
    writer.add((game.red_ports[decoy.host] & decoy.port) != 0 ? 1.0F : 0.0F);
  }
  writer.add_bits(game.known_nets, kSubnetCount);
  writer.add_bits(game.swept, kSubnetCount);
  writer.add(static_cast<float>(game.step) / static_cast<float>(game.horizon));
  writer.add(game.outage_tenths != 0 ? 1.0F : 0.0F);
  writer.add(game.ot_pid_known ? 1.0F : 0.0F);
  writer.add(game.ot_service_known ? 1.0F : 0.0F);
  writer.add(game.last_scan_empty ? 1.0F : 0.0F);
  writer.add(game.reached_12 ? 1.0F : 0.0F);
  writer.add_bits(game.mail_immune, 2);
  writer.add_one_of(static_cast<unsigned>(static_cast<int>(game.last_success) + 1), 3, true);
  writer.add_one_of(static_cast<unsigned>(game.red), kRedCount, true);
  const bool is_b_line = game.red == Red::kBLine;
  writer.add_one_of(game.position, kBLineSteps.size(), is_b_line);
  writer.add_one_of(game.user_pick & 3u, kUserHost.size(), game.user_pick != kNoHost);
}

}  // namespace cagepool
