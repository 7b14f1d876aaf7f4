// The text of receive_kernels.h. A compiler cache keeps no file that embeds others, so this one is small.
#include "core/embed.hpp"

WEFTIO_EMBED(receive_kernels_text, "receive_kernels.h");

namespace weftio::test {

std::string_view receive_kernels();
std::string_view receive_kernels()
{
    return receive_kernels_text();
}

} // namespace weftio::test
