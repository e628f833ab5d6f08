#pragma once
// Many games stepped together into memory that belongs to the caller.

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "core/episode.hpp"
#include "core/snapshot.hpp"
#include "core/thread_pool.hpp"
#include "core/trace.hpp"

namespace cagepool {

class Batch {
 public:
  Batch(std::vector<Setting> settings, const Outputs& outputs, Autoreset autoreset,
        ComplianceRule rule, int threads);

  std::size_t games() const { return settings_.size(); }
  int threads() const { return pool_ ? pool_->threads() : 1; }

  /// Start new episodes; with `seeds`, the first ones of new streams.
  void reset(std::span<const std::int64_t> ids, std::span<const std::uint64_t> seeds);
  /// Let the rest of the episode, and those after it, draw from other streams.
  void reseed(std::span<const std::int64_t> ids, std::span<const std::uint64_t> seeds);
  /// Play one action in every game, or in those named. Returns how many episodes ended.
  std::size_t step(std::span<const std::int64_t> actions, std::span<const std::int64_t> red_actions,
                   std::optional<std::span<const std::int64_t>> ids);
  /// Write observations elsewhere from now on.
  void redirect(std::span<float> observations);
  void redirect(std::span<std::uint8_t> observations);

  std::vector<std::uint8_t> save(std::int64_t id);
  /// Put saved games in the place of others; nothing changes if any of the snapshots is refused.
  void restore(std::span<const std::int64_t> ids, std::span<const Blob> blobs);

  Game game(std::int64_t id);
  /// The sessions of the episode so far.
  std::vector<Session> log(std::int64_t id);
  /// What each game's state shows; only the fields of a trace named `s_*` are written.
  void describe(std::span<TraceRow> rows);

 private:
  class Entry;  // refuses a second caller

  Job job();
  std::size_t checked(std::int64_t id) const;
  void check_distinct(std::span<const std::int64_t> ids);
  void check_step(std::span<const std::int64_t> actions, std::span<const std::int64_t> red_actions,
                  std::optional<std::span<const std::int64_t>> ids);

  std::vector<Setting> settings_;
  std::vector<Game> games_;
  std::size_t log_size_;
  std::vector<Session> logs_;
  std::vector<std::int64_t> all_ids_;
  std::vector<std::uint8_t> named_;  // scratch of check_distinct
  Outputs out_;
  Autoreset autoreset_;
  ComplianceRule rule_;
  bool takes_red_actions_;
  std::size_t unstarted_;
  std::unique_ptr<ThreadPool, EndThreadPool> pool_;
  std::atomic<bool> entered_ = false;
};

}  // namespace cagepool
