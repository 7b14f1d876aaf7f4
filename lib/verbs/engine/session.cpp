#include "session.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <vector>

#include "opening.hpp"
#include "stale.hpp"

namespace weftio::verbs {

session::session(const settings& wanted, const weftio_verbs_host& host) : process_(getpid())
{
    constexpr std::chrono::milliseconds period{10};
    events_.set_poll(period, [this] { poll(); });
    open_nodes(wanted, host, events_, nodes_);
    stale().start(wanted.stale, wanted.stale_asked_for);
    std::vector<device_description> all;
    for (unsigned each = 0; each != devices(); ++each)
        all.push_back(describe_files(nodes_[each], each));
    tree_.emplace(all);
    rdma_cm::sweep_ports();
    for (unsigned each = 0; each != devices(); ++each)
        counters_.emplace_back(tree_->path() + "/sys/class/infiniband/" + all[each].name, nodes_[each]);
    show_.emplace(events_, tree_->path(), [this] { return describe_all(); });
}

std::vector<std::shared_ptr<open_file>> session::files()
{
    const std::scoped_lock lock(mutex_);
    std::vector<std::shared_ptr<open_file>> all;
    for (const auto& [identity, each] : files_)
        all.push_back(each);
    return all;
}

/// For weftio-run --show.
std::string session::describe_all()
{
    const std::vector<std::shared_ptr<open_file>> open = files();
    std::string text;
    for (unsigned device = 0; device != devices(); ++device) {
        const node& each = nodes_[device];
        text += fmt::format("mlx5_{}: port {}, MTU {}, {}, addresses {}\n", device, each.port.spec(), each.port.mtu(),
                            each.port.link_up() ? "up" : "down", fmt::join(each.rdma.gids(), ", "));
        for (const auto& one : open)
            if (auto* const of = dynamic_cast<context*>(one.get()); of && &of->of == &each)
                text += show(*of);
    }
    if (manager_)
        text += manager_->show();
    return text;
}

void session::end() noexcept
{
    const std::scoped_lock no_poll(sweeping_);
    std::map<std::uint64_t, std::shared_ptr<open_file>> all;
    {
        const std::scoped_lock lock(mutex_);
        all.swap(files_);
    }
    show_.reset();
    for (const auto& [identity, each] : all)
        events_.forget(each->ours());
    all.clear();
    manager_.reset();
    counters_.clear();
    nodes_.clear();
    tree_.reset();
}

void session::leave_in_child() noexcept
{
    rdma_cm::leave_ports_in_child();
}

void session::count() noexcept
{
    const std::scoped_lock lock(sweeping_);
    if (!counting_)
        counting_.emplace(events_);
    for (counter_files& each : counters_)
        each.write();
}

bool session::is_here() const noexcept
{
    return getpid() == process_;
}

std::shared_ptr<open_file> session::make(unsigned device, int flags)
{
    if (device != connection_manager_node) {
        require(device < nodes_.size(), ENXIO);
        return std::make_shared<context>(nodes_[device], flags);
    }
    {
        const std::scoped_lock lock(mutex_);
        if (!manager_)
            manager_.emplace(nodes_);
    }
    return manager_->open(flags);
}

int session::open(unsigned device, int flags) noexcept
try {
    const std::shared_ptr<open_file> made = make(device, flags);
    const int number = made->program();
    try {
        events_.watch(made->ours(), [this] { sweep_if_nobody_does(); });
        const std::scoped_lock lock(mutex_);
        files_[made->identity()] = made;
    } catch (...) {
        events_.forget(made->ours());
        ::close(number);
        throw;
    }
    return number;
} catch (const failure& why) {
    return -why.number;
} catch (...) {
    return -ENOMEM;
}

std::shared_ptr<open_file> session::find(int number) noexcept
{
    const std::uint64_t identity = identity_of(number);
    const std::scoped_lock lock(mutex_);
    const auto found = files_.find(identity);
    return identity == 0 || found == files_.end() ? nullptr : found->second;
}

std::shared_ptr<open_file> session::take_closed()
{
    const std::scoped_lock lock(mutex_);
    for (auto each = files_.begin(); each != files_.end(); ++each) {
        if (has_hung_up(each->second->ours())) {
            std::shared_ptr<open_file> taken = std::move(each->second);
            files_.erase(each);
            return taken;
        }
    }
    return nullptr;
}

void session::sweep() noexcept
{
    const std::scoped_lock one_at_a_time(sweeping_);
    sweep_all();
}

/// Runs in the thread of events_. A thread that sweeps may wait for functions of this thread, so this one does not
/// wait: the event is repeated until that thread has swept.
void session::sweep_if_nobody_does() noexcept
{
    if (const std::unique_lock only_one(sweeping_, std::try_to_lock); only_one)
        sweep_all();
}

/// Runs in the thread of events_. Does nothing while contexts are ended, and no context ends meanwhile.
void session::poll() noexcept
try {
    const std::unique_lock only_one(sweeping_, std::try_to_lock);
    if (!only_one)
        return;
    for (counter_files& each : counters_)
        each.look_at_link();
    constexpr unsigned polls_per_count = 10;
    if (counting_ && ++polls_ % polls_per_count == 0)
        for (counter_files& each : counters_)
            each.write();
    for (const auto& each : files())
        each->poll();
} catch (const std::bad_alloc&) { // retried by the next poll
}

void session::sweep_all() noexcept
{
    while (const std::shared_ptr<open_file> closed = take_closed())
        events_.forget(closed->ours());
}

} // namespace weftio::verbs
