// Tests whether a driver compiles loops with barriers right, and chooses build settings with which it does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/opencl/discovery.hpp"

namespace weftio::devices::opencl {

/// How kernels of several lanes are built.
enum class build_method {
    plain, ///< unchanged
    /// The user's text and the device library without optimization. With optimization, functions called with one lane
    /// would keep the barriers of block functions in branches that are never taken, and PoCL 3.1 miscompiles these too.
    unoptimized,
    cbs, ///< with PoCL's work-group method "cbs", which PoCL reads from the environment
};

constexpr const char* method_variable = "POCL_WORK_GROUP_METHOD";
/// The user's value of method_variable; empty if unset, or set by set_cbs here or in a parent program.
std::string method_of_user();
/// Makes PoCL use `cbs` in this process.
bool set_cbs();

/// The environment in which kernels built so are tested: that of this process, without PoCL's cache and without the
/// values of set_cbs.
std::vector<std::string> canary_environment(build_method method);

/// The text before the user's text.
std::string_view text_before(build_method method) noexcept;

/// The executable built from canary_main.c, embedded by the build.
std::string_view canary_program() noexcept;

/// The text of canary_kernels.h.
std::string_view canary_text() noexcept;

/// A kernel of canary_kernels.h and the digest of its result.
struct canary_kernel {
    const char* name;
    std::uint32_t digest;
};
/// The first word of a canary_world before the kernel starts.
constexpr std::uint32_t canary_state = 20;
std::span<const canary_kernel> canary_kernels() noexcept;
/// The text of the kernels, behind text_before().
std::string canary_source(build_method method);

/// Why the driver could not write its files: the process's limit (limit_of_files), or full folders (lack_of_room, which
/// writes a few megabytes to each for a moment). Empty if it can.
std::string limit_of_files();
std::string lack_of_room();

/// Builds and runs the kernels in a process of their own, and returns whether all results are right. Blocks until that
/// process has ended: seconds; for endless kernels some 20 s of CPU time, 5 minutes at most. `index` counts as in
/// `opencl:N`.
/// @throws weftio::error errc::not_supported the process cannot be started; errc::device_error there is no verdict:
///         something else ended the process, or files cannot be written
bool runs_canary(unsigned index, build_method method);

/// Returns the first method with which the device runs the kernels right, and puts it into effect for the process. Each
/// driver, device and PoCL setting is tested once: the answer is kept for the process, and in a file of
/// $XDG_CACHE_HOME/weftio or ~/.cache/weftio if that can be written. Any thread; one at a time.
/// @throws weftio::error errc::not_supported no method works; errc::device_error there is no verdict, and nothing is
///         kept
build_method choose_build(const found_device& device, unsigned index);

} // namespace weftio::devices::opencl
