// Streams of WRITEs: bandwidth by size, and message rate by the number of queue pairs.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "initiated/initiated.kernel.h"
#include "initiated/measure.hpp"
#include "initiated/proxy.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(initiated_stream, "initiated.kernel.h");

namespace weftio::bench {

namespace {

constexpr std::uint32_t most_in_flight = fabric::depth / 2, in_flight_bytes = 1u << 20, most_slots = 64;
constexpr std::size_t line = 64; ///< behind the slots of a way: the number of its messages

/// What a row measures.
struct stream {
    std::uint32_t queues, bytes;
    bool values; ///< 8 bytes that travel in the entry
};

initiated_stream_plan plan_of(const initiated_settings& settings, const stream& stream)
{
    const std::uint32_t in_flight = std::bit_floor(std::clamp(in_flight_bytes / stream.bytes, 2u, most_in_flight));
    return {.duration_ns = static_cast<std::uint64_t>(settings.seconds * 1e9),
            .ways = stream.queues,
            .bytes = stream.bytes,
            .slots = std::min(in_flight, most_slots),
            .stride = (stream.bytes + 7) / 8 * 8,
            .batch = std::min(settings.batch, in_flight / 2),
            .in_flight = in_flight,
            .values = stream.values,
            .whole_block = 0};
}

std::size_t bytes_of_way(const initiated_stream_plan& plan)
{
    return std::size_t{plan.slots} * plan.stride + line;
}

std::vector<way_bytes> areas(const initiated_stream_plan& plan, std::size_t area)
{
    std::vector<way_bytes> all;
    for (std::size_t each = 0; each < plan.ways; ++each)
        all.push_back({each * area, area, each * area, area});
    return all;
}

/// One row: the ways of kernels and of proxies, and what they have done.
class streams {
 public:
    streams(const initiated_settings& settings, fabric& fabric, const stream& stream)
        : fabric_(fabric), plan_(plan_of(settings, stream)), area_(bytes_of_way(plan_)),
          kernels_(fabric, poster::kernel, areas(plan_, area_)), proxied_(fabric, poster::proxy, areas(plan_, area_)),
          plan_memory_(fabric.kernels().allocate(sizeof plan_, memory_kind::device)),
          results_(fabric.kernels().allocate(stream.queues * sizeof(initiated_stream_result), memory_kind::cpu_device)),
          scratch_(fabric.kernels().allocate(stream.queues * sizeof(weftio_u32), memory_kind::device))
    {
        for (std::size_t at = 0; at < sent_.size() / sizeof(std::uint64_t); ++at) {
            const std::uint64_t word = (at + 1) * 0x9e3779b97f4a7c15u; // no two words are equal
            std::memcpy(&sent_[at * sizeof word], &word, sizeof word);
        }
        fabric.put_sent(sent_);
    }

    /// Messages a second. @throws weftio::error a byte or a message is missing
    double measure(const column& how)
    {
        plan_.whole_block = how.whole_block;
        plan_memory_.upload(&plan_, sizeof plan_);
        written_.assign(written_.size(), 0);
        fabric_.put_written(written_);
        std::memset(results_.cpu_address(), 0, results_.bytes());
        const ways& mine = how.who == poster::kernel ? kernels_ : proxied_;
        const std::uint64_t before = mine.executed();
        run(how, mine);
        fabric_.get_written(written_);
        check(how, mine.executed() - before);
        return rate();
    }

 private:
    const initiated_stream_result& result(std::uint32_t way) const
    {
        return static_cast<const initiated_stream_result*>(results_.cpu_address())[way];
    }
    grid shape(const column& how) const
    {
        const bool far = !fabric_.kernels().name().starts_with("cpu");
        if (how.whole_block)
            return {.blocks = plan_.ways, .lanes = far ? 32u : 4u};
        const std::uint32_t lanes = plan_.ways <= 2 ? 1 : std::min(plan_.ways, 32u); // PoCL has no blocks of 2
        return {.blocks = (plan_.ways + lanes - 1) / lanes, .lanes = lanes};
    }
    void run(const column& how, const ways& mine) const
    {
        const std::unique_ptr<proxies> serving = proxies_for(mine, how, fabric_);
        running_kernel kernel = fabric_.kernels().launch(
            initiated_stream_kernel, shape(how), mine.on_device(),
            static_cast<const initiated_stream_plan*>(plan_memory_.device_address()), fabric_.kernels().clock(),
            static_cast<initiated_stream_result*>(results_.device_address()),
            static_cast<weftio_u32*>(scratch_.device_address()));
        end({&kernel, 1}, serving.get(), how);
    }
    double rate() const
    {
        std::uint64_t messages = 0, begin = ~std::uint64_t{0}, end = 0;
        for (std::uint32_t each = 0; each < plan_.ways; ++each) {
            messages += result(each).messages;
            begin = std::min(begin, result(each).begin_ns);
            end = std::max(end, result(each).end_ns);
        }
        return static_cast<double>(messages) / (static_cast<double>(end - begin) * 1e-9);
    }

    void check(const column& how, std::uint64_t executed) const
    {
        std::uint64_t messages = 0;
        for (std::uint32_t each = 0; each < plan_.ways; ++each) {
            const initiated_stream_result& done = result(each);
            if (done.status != WEFTIO_DEV_OK)
                throw error(errc::device_error,
                            fmt::format("initiated_bench: {}: queue {} ended with status {} after {} messages",
                                        how.name, each, done.status, done.messages));
            check_bytes(how, each, done.messages);
            messages += done.messages;
        }
        if (executed != messages + plan_.ways)
            throw error(errc::device_error, fmt::format("initiated_bench: {}: {} messages were posted and {} executed",
                                                        how.name, messages + plan_.ways, executed));
    }
    void check_bytes(const column& how, std::uint32_t way, std::uint64_t messages) const
    {
        const std::uint8_t* const there = &written_[way * area_];
        const std::uint8_t* const here = &sent_[way * area_];
        for (std::uint64_t slot = 0; slot < std::min<std::uint64_t>(plan_.slots, messages); ++slot) {
            const std::uint64_t last = (messages - 1 - slot) / plan_.slots * plan_.slots + slot + 1;
            const void* const expected = plan_.values ? static_cast<const void*>(&last) : here + slot * plan_.stride;
            if (std::memcmp(there + slot * plan_.stride, expected, plan_.bytes) != 0)
                throw error(errc::device_error,
                            fmt::format("initiated_bench: {}: queue {}, slot {} has wrong bytes", how.name, way, slot));
        }
        if (std::memcmp(there + std::size_t{plan_.slots} * plan_.stride, &messages, sizeof messages) != 0)
            throw error(errc::device_error,
                        fmt::format("initiated_bench: {}: queue {}: the message behind the last one of {} is missing",
                                    how.name, way, messages));
    }

    fabric& fabric_;
    initiated_stream_plan plan_;
    std::size_t area_;
    std::vector<std::uint8_t> sent_ = std::vector<std::uint8_t>(area_ * plan_.ways), written_ = sent_;
    ways kernels_, proxied_;
    memory plan_memory_, results_, scratch_;
};

std::vector<column> stream_columns(const initiated_settings& settings)
{
    std::vector<column> columns{{"kernel, lane", poster::kernel, false, 0}, {"kernel, block", poster::kernel, true, 0}};
    for (const std::uint32_t threads : settings.proxies)
        for (const bool whole_block : {false, true})
            columns.push_back({fmt::format("proxy {}, {}", threads, whole_block ? "block" : "lane"), poster::proxy,
                               whole_block, threads});
    return columns;
}

/// All columns of a row, round by round; each value times `factor`.
std::vector<std::vector<double>> values_of(const initiated_settings& settings, fabric& fabric, const stream& stream,
                                           const std::vector<column>& columns, double factor)
{
    streams row(settings, fabric, stream);
    std::vector<std::vector<double>> values(columns.size());
    for (unsigned round = 0; round < settings.rounds; ++round)
        for (std::size_t at = 0; at < columns.size(); ++at)
            values[at].push_back(row.measure(columns[at]) * factor);
    return values;
}

std::string words_of(std::uint32_t bytes)
{
    return bytes < 1024      ? fmt::format("{} B", bytes)
           : bytes < 1 << 20 ? fmt::format("{} KiB", bytes >> 10)
                             : fmt::format("{} MiB", bytes >> 20);
}

} // namespace

std::size_t bytes_of_streams(const initiated_settings& settings)
{
    std::size_t most = 0;
    for (const std::uint32_t bytes : settings.sizes)
        most = std::max(most, settings.size_queues * bytes_of_way(plan_of(settings, {1, bytes, false})));
    for (const std::uint32_t queues : settings.queues)
        most = std::max(most, queues * bytes_of_way(plan_of(settings, {1, 8, false})));
    return most;
}

void bandwidth_by_size(const initiated_settings& settings, fabric& fabric, report& report)
{
    const std::vector<column> columns = stream_columns(settings);
    report.begin(fmt::format("bandwidth, {} queues, {}", settings.size_queues, fabric.engines()), "GB/s", columns);
    for (const std::uint32_t bytes : settings.sizes)
        report.add(words_of(bytes),
                   values_of(settings, fabric, {settings.size_queues, bytes, false}, columns, bytes * 1e-9));
}

void rate_by_queues(const initiated_settings& settings, fabric& fabric, report& report)
{
    const std::vector<column> columns = stream_columns(settings);
    for (const bool values : {true, false}) {
        report.begin(fmt::format("8 B {}, {}", values ? "inline" : "from memory", fabric.engines()), "M/s", columns);
        for (const std::uint32_t queues : settings.queues)
            report.add(fmt::format("{} queues", queues),
                       values_of(settings, fabric, {queues, 8, values}, columns, 1e-6));
    }
}

} // namespace weftio::bench
