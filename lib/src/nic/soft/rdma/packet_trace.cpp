#include "nic/soft/rdma/packet_trace.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/log.hpp"
#include "core/write_file.hpp"

namespace weftio::nic::soft {

std::vector<std::uint8_t> packet_trace::pcapng(std::string_view comment) const
{
    net::pcapng_builder file("queue pairs", comment, most_bytes);
    for (std::uint64_t at = noted_ - std::min<std::uint64_t>(noted_, most_packets); at != noted_; ++at) {
        const packet& each = ring_[at % most_packets];
        file.add(std::span(each.start).first(each.kept_bytes), each.whole_bytes, each.time_ns, each.direction);
    }
    return file.file();
}

void write_trace_of_failure(const packet_trace& trace, std::string_view folder, std::uint32_t queue,
                            std::string_view why) noexcept
{
    constexpr unsigned most_files = 64;
    static std::atomic<unsigned> written{0};
    const unsigned number = written.fetch_add(1, std::memory_order_relaxed);
    if (number >= most_files)
        return;
    core::log_or_lose(log_level::warning, [&] {
        const std::string path = fmt::format("{}/weftio-{}-{}-queue-{}.pcapng", folder, getpid(), number, queue);
        const std::string comment = fmt::format("queue pair {} failed: {}", queue, why);
        if (const int failed = core::write_file(path, trace.pcapng(comment)); failed != 0)
            return fmt::format("weftio: WEFTIO_RDMA_TRACE: cannot write {}: {}", path, std::strerror(failed));
        return fmt::format("weftio: queue pair {} failed; the last packets of its port are in {}", queue, path);
    });
}

std::string_view folder_of_traces() noexcept
{
    const char* const folder = std::getenv("WEFTIO_RDMA_TRACE");
    return folder ? folder : std::string_view();
}

} // namespace weftio::nic::soft
