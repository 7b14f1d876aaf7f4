#include "devices/cuda/images.hpp"

#include <algorithm>

#include "weftio/kernel.hpp"

namespace weftio {

namespace {

/// Constructed on first use, because static initializers of other files fill it.
std::vector<std::string_view>& known()
{
    static std::vector<std::string_view> images;
    return images;
}

} // namespace

void detail::register_cuda_image(std::string_view image)
{
    bool there = std::any_of(known().begin(), known().end(),
                             [&](std::string_view other) { return other.data() == image.data(); });
    if (!image.empty() && !there)
        known().push_back(image);
}

const std::vector<std::string_view>& devices::cuda::images()
{
    return known();
}

} // namespace weftio
