#include "core/telemetry.hpp"

#include <rte_telemetry.h>
#include <rte_version.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/undying.hpp"

namespace weftio::core {

namespace {

struct all_rows {
    std::mutex mutex;
    std::map<std::pair<telemetry_kind, unsigned>, std::function<void(rte_tel_data*)>> rows;
    std::map<telemetry_kind, unsigned> next_number; ///< each kind counts its own
};

/// Rows of a page, so that the longest fit: those of files are long.
constexpr std::uint64_t rows_of(telemetry_kind kind)
{
    return kind == telemetry_kind::file ? 6 : kind >= telemetry_kind::file_sizes ? 1 : telemetry_page::numbers;
}

template <telemetry_kind Kind>
int answer(const char*, const char* parameters, rte_tel_data* data) noexcept
try {
    const std::vector<std::uint64_t> asked = telemetry_numbers(parameters, 1);
    if (parameters && asked.empty())
        return -1;
    all_rows& all = undying<all_rows>();
    std::scoped_lock lock(all.mutex);
    rte_tel_data_start_dict(data);
    telemetry_page page(data, asked.empty() ? 0 : asked[0], rows_of(Kind));
    for (const auto& [at, fill] : all.rows)
        if (at.first == Kind)
            page.row(at.second, fill);
    page.end();
    return 0;
} catch (const std::exception&) { // no memory for an answer
    return -1;
}

void register_commands()
{
    static const bool once = [] {
        rte_telemetry_register_cmd("/weftio/kernel", answer<telemetry_kind::kernel>,
                                   "Launched kernels that somebody holds. Parameter: the first number to show (0).");
        rte_telemetry_register_cmd("/weftio/semaphore", answer<telemetry_kind::semaphore>,
                                   "Semaphores: items by status. Parameter: the first number to show (0).");
        rte_telemetry_register_cmd("/weftio/registration_cache", answer<telemetry_kind::registration_cache>,
                                   "Registration caches: hits, bytes, ... Parameter: the first number to show (0).");
        rte_telemetry_register_cmd("/weftio/file", answer<telemetry_kind::file>,
                                   "Engines of files: operations by way. Parameter: the first number to show (0).");
        rte_telemetry_register_cmd("/weftio/file_sizes", answer<telemetry_kind::file_sizes>,
                                   "Engines of files: operations by size. Parameter: the first number to show (0).");
        rte_telemetry_register_cmd("/weftio/file_gpus", answer<telemetry_kind::file_gpus>,
                                   "Engines of files: operations by GPU. Parameter: the first number to show (0).");
        return true;
    }();
    static_cast<void>(once);
}

} // namespace

void put(rte_tel_data* dict, const char* name, std::uint64_t value)
{
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
    rte_tel_data_add_dict_uint(dict, name, value);
#else
    rte_tel_data_add_dict_u64(dict, name, value);
#endif
}

void nest(rte_tel_data* dict, const std::string& name, const std::function<void(rte_tel_data*)>& fill)
{
    std::unique_ptr<rte_tel_data, void (*)(rte_tel_data*)> inner(rte_tel_data_alloc(), rte_tel_data_free);
    if (!inner)
        return;
    rte_tel_data_start_dict(inner.get());
    fill(inner.get());
    if (rte_tel_data_add_dict_container(dict, name.c_str(), inner.get(), 0) == 0)
        static_cast<void>(inner.release()); // owned by `dict` now
}

void telemetry_page::row(std::uint64_t number, const std::function<void(rte_tel_data*)>& fill)
{
    ++total_;
    if (number >= first_ + count_)
        next_ = std::min(next_, number);
    else if (number >= first_)
        nest(dict_, std::to_string(number), fill);
}

void telemetry_page::end()
{
    put(dict_, "total", total_);
    if (next_ != UINT64_MAX)
        put(dict_, "next", next_);
}

std::vector<std::uint64_t> telemetry_numbers(const char* parameters, std::size_t most)
{
    std::vector<std::uint64_t> numbers;
    std::string_view left = parameters ? parameters : "";
    for (std::uint32_t number = 0; numbers.size() < most;) {
        auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), number);
        if (error != std::errc{})
            return {};
        numbers.push_back(number);
        left.remove_prefix(static_cast<std::size_t>(end - left.data()));
        if (left.empty())
            return numbers;
        if (left.front() != ',')
            return {};
        left.remove_prefix(1);
    }
    return {};
}

telemetry_row::telemetry_row(telemetry_kind kind, std::function<void(rte_tel_data*)> fill) : kind_(kind)
{
    register_commands();
    all_rows& all = undying<all_rows>();
    std::scoped_lock lock(all.mutex);
    number_ = all.next_number[kind]++;
    all.rows.emplace(std::pair(kind, number_), std::move(fill));
}

telemetry_row::~telemetry_row()
{
    all_rows& all = undying<all_rows>();
    std::scoped_lock lock(all.mutex);
    all.rows.erase({kind_, number_});
}

} // namespace weftio::core
