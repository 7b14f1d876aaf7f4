// The text of the canary's kernels. A compiler cache keeps no file that embeds others, so this one is small.
#include "core/embed.hpp"
#include "device/opencl/canary.hpp"

WEFTIO_EMBED(canary_kernels_text, "device/opencl/canary_kernels.h");

std::string_view weftio::detail::opencl::canary_text() noexcept
{
    return canary_kernels_text();
}
