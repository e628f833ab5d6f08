// The compiled module `cagepool._core`: constants, enumerations and tables of the game. The other
// files of this directory bind the classes and functions. Bindings convert types, check arguments
// and release the GIL; the logic is in cpp/core, cpp/policy and cpp/workers.

#include "bindings/module.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <tuple>
#include <vector>

#include "bindings/struct_fields.hpp"
#include "core/batch.hpp"
#include "core/kernel.hpp"
#include "core/step.hpp"

using namespace nanobind::literals;

namespace cagepool {
namespace {

std::vector<int> host_loss_tenths() {
  std::vector<int> tenths;
  for (int host = 0; host < kHostCount; ++host) {
    Game game{};
    game.privileged = bit(host);
    tenths.push_back(CompiledScenario::penalty_tenths(game));
  }
  return tenths;
}

/// Kind, positions after a failure and a success, and targets by user host, per position.
using BLineRow = std::tuple<RedKind, int, int, std::vector<int>>;

std::vector<BLineRow> b_line_plan() {
  std::vector<BLineRow> rows;
  rows.reserve(kBLineSteps.size());
  for (const BLineStep& step : kBLineSteps) {
    rows.emplace_back(step.kind, step.next[0], step.next[1],
                      std::vector<int>(step.target.begin(), step.target.end()));
  }
  return rows;
}

std::vector<std::tuple<int, int, int>> host_services() {
  std::vector<std::tuple<int, int, int>> rows;
  rows.reserve(kHostFacts.size());
  for (const HostFacts& facts : kHostFacts)
    rows.emplace_back(facts.listening, facts.user_level, facts.privileged);
  return rows;
}

std::vector<std::tuple<int, int>> ports_of_decoys() {
  std::vector<std::tuple<int, int>> rows;
  rows.reserve(kDecoyCount);
  for (std::size_t decoy = 0; decoy < kDecoyCount; ++decoy)
    rows.emplace_back(kDecoyPort[decoy], kDecoyFreePort[decoy]);
  return rows;
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Native simulator of CAGE Challenge 2.";
  // A batch that is alive when Python exits is no fault of the program.
  nb::set_leak_warnings(false);
  m.attr("HOST_COUNT") = kHostCount;
  m.attr("SUBNET_COUNT") = kSubnetCount;
  m.attr("ACTION_COUNT") = kActionCount;
  m.attr("RED_ACTION_COUNT") = kRedActionCount;
  m.attr("MAX_HOSTS") = kMaxHosts;
  m.attr("MAX_SUBNETS") = kMaxSubnets;
  m.attr("OBSERVATION_SIZE") = kObservationSize;
  m.attr("COUNTER_COUNT") = kCounterCount;
  m.attr("TYPE_COUNT") = kTypeCount;
  m.attr("ORDER_COUNT") = kOrderCount;
  m.attr("COMPILER") = __VERSION__;
  m.attr("GAME_BYTES") = sizeof(Game);
  m.attr("TRUE_STATE_BYTES") = sizeof(TrueState);
  m.attr("MAX_STEPS") = std::numeric_limits<std::uint16_t>::max();
  m.attr("RESTORE_TENTHS") = kRestoreTenths;
  m.attr("OUTAGE_TENTHS") = kOutageTenths;
  m.attr("SSH_PORT") = int{kSsh};
  m.attr("MAIL_PORT") = int{kMail};
  m.attr("TOP_EXPLOIT_SHARE") = kTopShare / 4294967296.0;
  m.attr("DETECTED_SHARE") = kDetectedShare / 4294967296.0;
  nb::enum_<Edition>(m, "Edition", nb::is_arithmetic())
      .value("V21", Edition::k21)
      .value("LEADERBOARD", Edition::kLeaderboard);
  nb::enum_<Red> reds(m, "Red", nb::is_arithmetic());
  for (std::size_t red = 0; red < kRedNames.size(); ++red)
    reds.value(kRedNames[red], static_cast<Red>(red));
  nb::enum_<RedKind>(m, "RedKind", nb::is_arithmetic())
      .value("SLEEP", RedKind::kSleep)
      .value("SWEEP", RedKind::kSweep)
      .value("SCAN", RedKind::kScan)
      .value("EXPLOIT", RedKind::kExploit)
      .value("ESCALATE", RedKind::kEscalate)
      .value("IMPACT", RedKind::kImpact);
  nb::enum_<BlueKind>(m, "BlueKind", nb::is_arithmetic())
      .value("SLEEP", BlueKind::kSleep)
      .value("MONITOR", BlueKind::kMonitor)
      .value("ANALYSE", BlueKind::kAnalyse)
      .value("REMOVE", BlueKind::kRemove)
      .value("DECOY", BlueKind::kDecoy)
      .value("RESTORE", BlueKind::kRestore)
      .value("MISINFORM", BlueKind::kMisinform);
  nb::enum_<Autoreset>(m, "Autoreset")
      .value("NEXT_STEP", Autoreset::kNextStep)
      .value("SAME_STEP", Autoreset::kSameStep)
      .value("DISABLED", Autoreset::kDisabled);
  nb::enum_<Knowledge>(m, "Knowledge")
      .value("TRUE", Knowledge::kTrue)
      .value("OBSERVED", Knowledge::kObserved);
  nb::enum_<Definition>(m, "Definition")
      .value("HOST", Definition::kHost)
      .value("FIX_TYPE", Definition::kFixType);

  m.def("simd_level", &simd_level,
        "Widest instruction set that the compiled code uses on this processor: x86-64-v4, "
        "x86-64-v3 or baseline.");
  m.def("host_loss_tenths", &host_loss_tenths,
        "Tenths of reward that blue loses per step while red is privileged, by host.");
  m.def("b_line_plan", &b_line_plan,
        "Plan of B_lineAgent: per position the kind of its action, the positions after a failure "
        "and after a success, and the target by user host (User1 to User4).");
  m.def("host_services", &host_services,
        "Exploit ports per host, as bits in ascending order of exploit weight: listening, and "
        "those whose genuine service yields a user account and a privileged account.");
  m.def("ports_of_decoys", &ports_of_decoys,
        "Port that each decoy opens, and port that must be free, as bits of `host_services`.");
  m.def("struct_layouts", &struct_layouts,
        "Structs that cross as rows of bytes, by name: size in bytes, and members as (name, NumPy "
        "type, offset, number of values).");
  m.def(
      "blue_action",
      [](std::size_t index) {
        const BlueAction& action = kBlueActions.at(index);
        return std::tuple(action.kind, int{action.host}, int{action.decoy}, action.decoy_bit != 0);
      },
      "index"_a,
      "Kind, host and decoy of one of blue's actions, and whether the host can ever take the "
      "decoy.");
  m.def(
      "red_action",
      [](std::size_t index) {
        const RedAction& action = kRedActions.at(index);
        return std::tuple(action.kind, action.target);
      },
      "index"_a, "Kind and target of one of red's actions.");

  bind_batch(m);
  bind_belief(m);
  bind_mlp(m);
  bind_policy(m);
  bind_workers(m);
}

}  // namespace cagepool
