#include "ports/kinds.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "core/undying.hpp"
#include "nic/soft/soft_port.hpp"

namespace weftio::ports {

namespace {

struct all_kinds {
    std::mutex mutex;
    std::vector<kind> list{{.prefix = "", .open = nic::soft::open_soft_port}};
};

} // namespace

void add_kind(const kind& kind)
{
    auto& kinds = core::undying<all_kinds>();
    const std::scoped_lock lock(kinds.mutex);
    kinds.list.push_back(kind);
}

std::shared_ptr<nic::backend> open_backend(std::string_view spec, const port_options& options)
{
    auto& kinds = core::undying<all_kinds>();
    std::unique_lock lock(kinds.mutex);
    const kind found = *std::find_if(kinds.list.rbegin(), kinds.list.rend(),
                                     [&](const kind& each) { return spec.starts_with(each.prefix); });
    lock.unlock();
    return found.open(spec, options);
}

} // namespace weftio::ports
