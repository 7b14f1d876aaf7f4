// Another process, for tests: makes memory of a GPU, fills it, hands it over by descriptor 3, and ends. Or it receives
// memory there, checks it and writes something else.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "devices/backend.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/memory_holder.hpp"

using namespace weftio;

namespace {

constexpr int socket_descriptor = 3;

int make(const device& gpu, std::size_t bytes)
{
    const memory_holder held = memory_holder::make(gpu, bytes);
    memory here = held.map(gpu);
    const std::vector<char> content(held.bytes(), 'm');
    here.upload(content.data(), content.size());
    held.send(socket_descriptor);
    return 0;
}

int receive(const device& gpu)
{
    const memory_holder held = memory_holder::receive(socket_descriptor);
    memory here = held.map(gpu);
    std::vector<char> content(held.bytes());
    detail::internals::backend(gpu).download(content.data(), here.device_address(), content.size());
    const bool right = std::all_of(content.begin(), content.end(), [](char each) { return each == 'm'; });
    std::fill(content.begin(), content.end(), 'r');
    here.upload(content.data(), content.size());
    return right ? 0 : 1;
}

} // namespace

/// holder_peer make BYTES GPU | holder_peer receive GPU
int main(int count, char** words)
try {
    if (count == 4 && std::string_view(words[1]) == "make")
        return make(device::open(words[3]), std::stoul(words[2]));
    return count == 3 ? receive(device::open(words[2])) : 2;
} catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 3;
}
