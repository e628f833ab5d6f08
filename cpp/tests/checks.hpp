#pragma once
// A minimal test framework, so that the C++ tests need nothing but a compiler.

#include <cstdio>
#include <exception>
#include <source_location>
#include <string>
#include <vector>

namespace cagepool {

inline int failed_checks = 0;

inline void check(bool holds, const std::source_location where = std::source_location::current()) {
  if (holds) return;
  ++failed_checks;
  std::fprintf(stderr, "%s:%u: a check in %s failed\n", where.file_name(), where.line(),
               where.function_name());
}

/// Check that `call` throws an `Error` whose text contains `words`.
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

/// Run all tests; returns the exit code of the program.
inline int run_tests(const std::vector<void (*)()>& tests) {
  int failed_tests = 0;
  for (void (*test)() : tests) {
    const int before = failed_checks;
    try {
      test();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "unexpected: %s\n", error.what());
      ++failed_checks;
    }
    failed_tests += failed_checks != before;
  }
  std::printf("%zu passed, %d failed\n", tests.size() - static_cast<std::size_t>(failed_tests),
              failed_tests);
  return failed_tests == 0 ? 0 : 1;
}

}  // namespace cagepool
