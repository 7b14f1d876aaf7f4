#include "core/telemetry.hpp"

#include <rte_telemetry.h>

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace weftio::detail {

namespace {

struct row {
    telemetry_kind kind;
    std::function<void(rte_tel_data*)> fill;
};

std::mutex mutex;
std::map<unsigned, row> rows; ///< guarded by mutex
unsigned next_number = 0;     ///< likewise

template <telemetry_kind Kind>
int answer(const char*, const char*, rte_tel_data* data) noexcept
try {
    std::scoped_lock lock(mutex);
    rte_tel_data_start_dict(data);
    for (const auto& [number, row] : rows)
        if (row.kind == Kind)
            nest(data, std::to_string(number), row.fill);
    return 0;
} catch (const std::exception&) { // no memory for an answer
    return -1;
}

void register_commands()
{
    static const bool once = [] {
        rte_telemetry_register_cmd("/weftio/kernel", answer<telemetry_kind::kernel>,
                                   "Launched kernels that somebody holds. No parameters.");
        rte_telemetry_register_cmd("/weftio/semaphore", answer<telemetry_kind::semaphore>,
                                   "Semaphores: items by status. No parameters.");
        return true;
    }();
    static_cast<void>(once);
}

} // namespace

void nest(rte_tel_data* dict, const std::string& name, const std::function<void(rte_tel_data*)>& fill)
{
    std::unique_ptr<rte_tel_data, void (*)(rte_tel_data*)> inner(rte_tel_data_alloc(), rte_tel_data_free);
    if (!inner)
        return;
    rte_tel_data_start_dict(inner.get());
    fill(inner.get());
    if (rte_tel_data_add_dict_container(dict, name.c_str(), inner.get(), 0) == 0)
        static_cast<void>(inner.release()); // the outer one owns it
}

telemetry_row::telemetry_row(telemetry_kind kind, std::function<void(rte_tel_data*)> fill)
{
    register_commands();
    std::scoped_lock lock(mutex);
    number_ = next_number++;
    rows.emplace(number_, row{kind, std::move(fill)});
}

telemetry_row::~telemetry_row()
{
    std::scoped_lock lock(mutex);
    rows.erase(number_);
}

} // namespace weftio::detail
