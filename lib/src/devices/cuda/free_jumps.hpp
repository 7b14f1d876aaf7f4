// Jumps at the entries of the driver's functions that end memory of a GPU.
#pragma once

#include <vector>

namespace weftio::devices::cuda {

/// While it lives, such a call is a free_watch::call, whatever pointer it was made by.
///
/// - Threads: one at a time; others may call the driver meanwhile.
class free_jumps {
 public:
    /// @throws weftio::error as hooks::entry_jump; errc::not_supported the driver has too many such functions. No jump
    ///         stays then
    free_jumps();
    free_jumps(const free_jumps&) = delete;
    free_jumps& operator=(const free_jumps&) = delete;
    ~free_jumps();

 private:
    void remove() noexcept;
};

} // namespace weftio::devices::cuda
