// Whether a driver compiles loops with barriers right, and what has to be done so that it does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/opencl/discovery.hpp"

namespace weftio::detail::opencl {

/// How kernels of several lanes are built.
enum class build_method {
    plain, ///< as they are
    /// The user's text without optimization, the device library with it: else functions for one lane would keep the
    /// barriers of those for a block, in branches that are never taken, and PoCL 3.1 goes wrong over such ones too.
    unoptimized,
    cbs, ///< with PoCL's work-group method of that name, which PoCL takes from the environment
};

constexpr const char* method_variable = "POCL_WORK_GROUP_METHOD";
/// What the user has set method_variable to; empty when nothing, or when it was set by set_cbs, here or in a program
/// that started this one.
std::string method_of_user();
/// Has PoCL use `cbs` in this process.
bool set_cbs();

/// The variables that kernels built so are tried with: those of this process, without PoCL's cache and what set_cbs
/// has set.
std::vector<std::string> canary_environment(build_method method);

/// What stands in front of the user's text.
std::string_view text_before(build_method method) noexcept;

/// The program canary_main.c as a file: the build makes this.
std::string_view canary_program() noexcept;

/// A kernel of canary_kernels.h, and the digest of what it leaves.
struct canary_kernel {
    const char* name;
    std::uint32_t digest;
};
/// The first word of its world when it starts.
constexpr std::uint32_t canary_state = 20;
std::span<const canary_kernel> canary_kernels() noexcept;
/// The kernels, with what stands in front of a user's text.
std::string canary_source(build_method method);
std::uint32_t canary_digest(std::span<const std::uint32_t> words) noexcept;

/// Why files of the driver could not be written: the bound of this process, and the folders that it writes to (which
/// takes a few megabytes of each for a moment). Empty when they can.
std::string limit_of_files();
std::string lack_of_room();

/// Runs the kernels on the device in a process of their own, built so. Blocks until they have ended: seconds, for ever
/// wrong ones some 20 s of the processor, 5 minutes at most. `index` counts as `opencl:N` does.
/// @throws weftio::error errc::not_supported the process cannot be started; errc::device_error nobody can tell: somebody
/// else ended it, or files cannot be written
bool runs_canary(unsigned index, build_method method);

/// The first method with which the device runs them right. Asked of each driver, device and setting of PoCL once: the
/// answer is kept for the process, and in a file of $XDG_CACHE_HOME/weftio or ~/.cache/weftio where that can be
/// written. Puts the method into effect for the process. Any thread; one at a time is served.
/// @throws weftio::error errc::not_supported there is none; errc::device_error nobody can tell, which is not kept
build_method choose_build(const found_device& device, unsigned index);

} // namespace weftio::detail::opencl
