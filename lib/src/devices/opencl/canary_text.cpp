// The text of the canary's kernels. A compiler cache keeps no file that embeds others, so this one is small.
#include "core/embed.hpp"
#include "devices/opencl/canary.hpp"

WEFTIO_EMBED(canary_kernels_text, "devices/opencl/canary_kernels.h");

std::string_view weftio::devices::opencl::canary_text() noexcept
{
    return canary_kernels_text();
}
