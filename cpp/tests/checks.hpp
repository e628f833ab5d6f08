#pragma once
// What core tests need. No test library comes with a compiler alone.

#include <cstdio>
#include <exception>
#include <source_location>
#include <string>
#include <vector>

namespace cagepool {

inline int failures = 0;

inline void check(bool holds, const std::source_location where = std::source_location::current()) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "%s:%u: a check in %s failed\n", where.file_name(), where.line(),
               where.function_name());
}

template <class Error, class Call>
void check_throws(Call call, const std::string& words,
                  const std::source_location where = std::source_location::current()) {
  try {
    call();
  } catch (const Error& error) {
    check(std::string(error.what()).find(words) != std::string::npos, where);
    return;
  }
  check(false, where);
}

/// Run all; returns the exit code.
inline int run_tests(const std::vector<void (*)()>& tests) {
  int failed = 0;
  for (void (*test)() : tests) {
    const int before = failures;
    try {
      test();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "unexpected: %s\n", error.what());
      ++failures;
    }
    failed += failures != before;
  }
  std::printf("%zu passed, %d failed\n", tests.size() - static_cast<std::size_t>(failed), failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace cagepool
