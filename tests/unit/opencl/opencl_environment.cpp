// Gives PoCL four compute units on any machine, so that the same tests run everywhere, and keeps its compiler from
// replicating work-items, which it does for two of them and dies of. PoCL reads this once, at the first call.

#include <cstdlib>

namespace {

[[maybe_unused]] const int units_are_set = setenv("POCL_MAX_PTHREAD_COUNT", "4", 0);
[[maybe_unused]] const int replication_is_off = setenv("POCL_FULL_REPLICATION_THRESHOLD", "1", 0);

} // namespace
