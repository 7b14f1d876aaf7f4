// All-to-all and transposition: ends that exchange bytes in lockstep.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

#include "initiated/exchange.kernel.h"
#include "initiated/measure.hpp"
#include "initiated/proxy.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(initiated_all_to_all, "exchange.kernel.h");
WEFTIO_DEFINE_KERNEL(initiated_transpose, "exchange.kernel.h");

namespace weftio::bench {

namespace {

constexpr std::uint32_t rehearsal = 8; ///< iterations that say how many fit into the time

bool is_gpu(const device& device)
{
    return device.name().starts_with("cuda");
}

/// One row. What the ends exchange is in the classes below.
class exchange {
 public:
    exchange(fabric& fabric, initiated_exchange_plan plan, std::span<const way_bytes> bytes, std::uint32_t of_ring)
        : fabric_(fabric), plan_(plan), kernels_(fabric, poster::kernel, bytes),
          proxied_(fabric, poster::proxy, bytes, of_ring),
          results_(fabric.kernels().allocate(plan.ends * sizeof(initiated_exchange_result), memory_kind::cpu_device))
    {
        for (std::uint32_t number = 0; number < fabric.devices(); ++number) {
            const device& device = fabric.kernels(number);
            shares_.push_back({.runs = device,
                               .number = number,
                               .plan = device.allocate(sizeof plan_, memory_kind::device),
                               .scratch = device.allocate(plan.ends * sizeof(weftio_u32), memory_kind::device)});
        }
    }
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;
    virtual ~exchange() = default;

    /// Chooses the number of iterations that take `seconds` if the kernel posts.
    void rehearse(const column& how, double seconds)
    {
        plan_.iterations = rehearsal;
        plan_.iterations = static_cast<std::uint32_t>(std::clamp(seconds * 1e6 / measure(how), 4.0, 1e6));
    }
    /// Microseconds of an iteration. @throws weftio::error a byte or a message is missing
    double measure(const column& how)
    {
        const ways& mine = how.who == poster::kernel ? kernels_ : proxied_;
        for (share& each : shares_) {
            plan_.first = each.number * ends_of_device();
            each.plan.upload(&plan_, sizeof plan_);
        }
        std::memset(fabric_.written(), 0, written_bytes());
        std::memset(results_.cpu_address(), 0, results_.bytes());
        const std::uint64_t before = mine.executed();
        const std::unique_ptr<proxies> serving = proxies_for(mine, how, fabric_);
        std::vector<running_kernel> kernels;
        for (const share& each : shares_)
            kernels.push_back(launch(mine, each));
        end(kernels, serving.get(), how);
        check(how, mine, before);
        return duration_us() / plan_.iterations;
    }

 protected:
    /// What a device has of its own: a kernel with a block for each of its ends.
    struct share {
        const device& runs;
        std::uint32_t number; ///< of the device
        memory plan, scratch;
    };
    virtual running_kernel launch(const ways& mine, const share& share) const = 0;
    virtual std::size_t written_bytes() const = 0;
    virtual std::uint64_t messages() const = 0; ///< of all ends in one iteration
    /// Whether the bytes of an iteration, one of the last two, are at their end.
    virtual bool has_bytes_of(std::uint32_t iteration) const = 0;

    std::uint32_t ends_of_device() const { return plan_.ends / fabric_.devices(); }
    template <class T>
    T* device_address(const memory& memory) const
    {
        return static_cast<T*>(memory.device_address());
    }

    fabric& fabric_;
    initiated_exchange_plan plan_;
    ways kernels_, proxied_;
    memory results_;

 private:
    const initiated_exchange_result& result(std::uint32_t end) const
    {
        return static_cast<const initiated_exchange_result*>(results_.cpu_address())[end];
    }
    /// Of the device that took longest. Each has a clock of its own.
    double duration_us() const
    {
        std::uint64_t longest = 0;
        for (std::uint32_t first = 0; first < plan_.ends; first += ends_of_device()) {
            std::uint64_t begin = ~std::uint64_t{0}, end = 0;
            for (std::uint32_t each = first; each < first + ends_of_device(); ++each) {
                begin = std::min(begin, result(each).begin_ns);
                end = std::max(end, result(each).end_ns);
            }
            longest = std::max(longest, end - begin);
        }
        return static_cast<double>(longest) * 1e-3;
    }
    void check(const column& how, const ways& mine, std::uint64_t before) const
    {
        for (std::uint32_t each = 0; each < plan_.ends; ++each)
            if (result(each).status != WEFTIO_DEV_OK || result(each).iterations != plan_.iterations + 1)
                throw error(errc::device_error,
                            fmt::format("initiated_bench: {}: end {} ended with status {} after {} of {} iterations",
                                        how.name, each, result(each).status, result(each).iterations,
                                        plan_.iterations + 1));
        for (const std::uint32_t iteration : {plan_.iterations - 1, plan_.iterations})
            if (!has_bytes_of(iteration))
                throw error(errc::device_error, fmt::format("initiated_bench: {}: iteration {} of {} has wrong bytes",
                                                            how.name, iteration + 1, plan_.iterations + 1));
        const std::uint64_t posted = messages() * (plan_.iterations + 1);
        const std::uint64_t executed = mine.executed_of(before + posted) - before;
        if (executed != posted)
            throw error(errc::device_error, fmt::format("initiated_bench: {}: {} messages were posted and {} executed",
                                                        how.name, posted, executed));
    }

    std::vector<share> shares_;
};

class all_to_all final : public exchange {
 public:
    all_to_all(fabric& fabric, std::uint32_t ends, std::uint32_t bytes)
        : exchange(fabric, plan_of(ends, bytes), areas(plan_of(ends, bytes), fabric.devices()), ends)
    {}

 private:
    static initiated_exchange_plan plan_of(std::uint32_t ends, std::uint32_t bytes)
    {
        return {.ends = ends, .iterations = 0, .bytes = bytes, .stride = (bytes + 63) / 64 * 64, .first = 0};
    }
    static std::vector<way_bytes> areas(const initiated_exchange_plan& plan, std::uint32_t devices)
    {
        const std::size_t area = initiated_piece_area(plan);
        std::vector<way_bytes> all;
        for (std::uint32_t each = 0; each < plan.ends * plan.ends; ++each)
            all.push_back({each * area, area, each * area, area, each / plan.ends * devices / plan.ends});
        return all;
    }
    running_kernel launch(const ways& mine, const share& share) const override
    {
        return share.runs.launch(
            initiated_all_to_all_kernel, {.blocks = ends_of_device(), .lanes = is_gpu(share.runs) ? 32 : plan_.ends},
            mine.on_device(share.number), device_address<const initiated_exchange_plan>(share.plan), share.runs.clock(),
            fabric_.sent_on_device(), fabric_.written_on_device(), device_address<initiated_exchange_result>(results_),
            device_address<weftio_u32>(share.scratch));
    }
    std::size_t written_bytes() const override
    {
        return std::size_t{plan_.ends} * plan_.ends * initiated_piece_area(plan_);
    }
    std::uint64_t messages() const override { return 2 * std::uint64_t{plan_.ends} * (plan_.ends - 1); }
    bool has_bytes_of(std::uint32_t iteration) const override
    {
        for (std::uint32_t from = 0; from < plan_.ends; ++from)
            for (std::uint32_t to = 0; to < plan_.ends; ++to) {
                const std::uint8_t* const piece =
                    fabric_.written() +
                    std::size_t{initiated_way_number(plan_, from, to)} * initiated_piece_area(plan_) +
                    std::size_t{iteration % 2} * plan_.stride;
                for (std::uint32_t word = 0; from != to && word < plan_.bytes / 4; ++word) {
                    const std::uint32_t expected = initiated_piece_word(from, to, iteration, word);
                    if (std::memcmp(piece + word * 4, &expected, 4) != 0)
                        return false;
                }
            }
        return true;
    }
};

class transposition final : public exchange {
 public:
    transposition(fabric& fabric, std::uint32_t ends)
        : exchange(fabric, plan_of(ends), areas(plan_of(ends), fabric.devices()), 1)
    {
        std::vector<std::uint64_t> elements(order * order);
        for (std::size_t row = 0; row < order; ++row)
            for (std::size_t column = 0; column < order; ++column)
                elements[row * order + column] = element(row, column);
        for (std::uint32_t number = 0; number < fabric.devices(); ++number) {
            matrices_.push_back(
                fabric.kernels(number).allocate(elements.size() * sizeof(std::uint64_t), memory_kind::device));
            matrices_.back().upload(elements.data(), matrices_.back().bytes());
        }
    }

 private:
    static constexpr std::size_t order = INITIATED_ORDER;
    static std::uint64_t element(std::uint64_t row, std::uint64_t column)
    {
        return (row * order + column) * 0x9e3779b97f4a7c15u;
    }
    static initiated_exchange_plan plan_of(std::uint32_t ends)
    {
        return {.ends = ends, .iterations = 0, .bytes = 0, .stride = 0, .first = 0};
    }
    static std::vector<way_bytes> areas(const initiated_exchange_plan& plan, std::uint32_t devices)
    {
        const std::size_t tile = initiated_tile_area(plan), rows = initiated_rows_area(plan);
        std::vector<way_bytes> all;
        for (std::uint32_t from = 0; from < plan.ends; ++from)
            for (std::uint32_t to = 0; to < plan.ends; ++to)
                all.push_back({(from * plan.ends + to) * tile, tile, to * rows, rows, from * devices / plan.ends});
        return all;
    }
    running_kernel launch(const ways& mine, const share& share) const override
    {
        return share.runs.launch(
            initiated_transpose_kernel, {.blocks = ends_of_device(), .lanes = is_gpu(share.runs) ? 32 * plan_.ends : 4},
            mine.on_device(share.number), device_address<const initiated_exchange_plan>(share.plan), share.runs.clock(),
            device_address<const weftio_u64>(matrices_[share.number]), fabric_.sent_on_device(),
            fabric_.written_on_device(), device_address<initiated_exchange_result>(results_),
            device_address<weftio_u32>(share.scratch));
    }
    std::size_t written_bytes() const override { return std::size_t{plan_.ends} * initiated_rows_area(plan_); }
    std::uint64_t messages() const override
    {
        return std::uint64_t{plan_.ends} * (plan_.ends - 1) * (initiated_rows(plan_) + 1);
    }
    bool has_bytes_of(std::uint32_t iteration) const override
    {
        const std::uint32_t rows = initiated_rows(plan_);
        for (std::uint32_t row = 0; row < order; ++row)
            for (std::uint32_t column = 0; column < order; ++column) {
                const std::uint64_t expected = element(column, row) + iteration;
                const std::uint8_t* const there = fabric_.written() +
                                                  std::size_t{row / rows} * initiated_rows_area(plan_) +
                                                  initiated_row_offset(plan_, iteration, row % rows, column);
                if (std::memcmp(there, &expected, sizeof expected) != 0)
                    return false;
            }
        return true;
    }

    std::vector<memory> matrices_; ///< the whole of it, in memory of each device
};

std::vector<column> exchange_columns(const initiated_settings& settings)
{
    std::vector<column> columns{{"kernel", poster::kernel, false, 0}};
    for (const std::uint32_t threads : settings.proxies)
        columns.push_back({fmt::format("proxy {}", threads), poster::proxy, false, threads});
    return columns;
}

/// A table with a row for each number of ends.
void add_table(const initiated_settings& settings, report& report, const std::string& title,
               const std::function<std::unique_ptr<exchange>(std::uint32_t)>& make)
{
    const std::vector<column> columns = exchange_columns(settings);
    report.begin(title, "us", columns);
    for (const std::uint32_t ends : settings.ends) {
        const std::unique_ptr<exchange> row = make(ends);
        std::vector<std::vector<double>> values(columns.size());
        row->rehearse(columns.front(), settings.seconds);
        for (unsigned round = 0; round < settings.rounds; ++round)
            for (std::size_t at = 0; at < columns.size(); ++at)
                values[at].push_back(row->measure(columns[at]));
        report.add(fmt::format("{} ends", ends), values);
    }
}

} // namespace

std::size_t bytes_of_exchanges(const initiated_settings& settings)
{
    std::size_t most = 0;
    for (const std::uint32_t ends : settings.ends)
        most = std::max<std::size_t>(most, ends * initiated_rows_area({ends, 0, 0, 0, 0}));
    return most;
}

void all_to_all_in_all(const initiated_settings& settings, fabric& fabric, report& report)
{
    add_table(settings, report, fmt::format("all-to-all of 1 KiB in all, {}", fabric.engines()),
              [&](std::uint32_t ends) { return std::make_unique<all_to_all>(fabric, ends, 1024 / (ends * ends)); });
}

void all_to_all_a_pair(const initiated_settings& settings, fabric& fabric, report& report)
{
    add_table(settings, report, fmt::format("all-to-all of 64 B a pair, {}", fabric.engines()),
              [&](std::uint32_t ends) { return std::make_unique<all_to_all>(fabric, ends, 64); });
}

void transpositions(const initiated_settings& settings, fabric& fabric, report& report)
{
    add_table(settings, report, fmt::format("transposition of 1024 x 1024, {}", fabric.engines()),
              [&](std::uint32_t ends) { return std::make_unique<transposition>(fabric, ends); });
}

} // namespace weftio::bench
