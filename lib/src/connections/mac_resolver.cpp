#include "connections/mac_resolver.hpp"

#include <pthread.h>

#include <utility>

#include "core/signals.hpp"
#include "weftio/error.hpp"

namespace weftio::connections {

mac_resolver::~mac_resolver()
{
    {
        const std::scoped_lock lock(mutex_);
        ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& each : threads_)
        each.join();
}

bool mac_resolver::ask(question what)
{
    const std::scoped_lock lock(mutex_);
    if (ending_ || waiting_.size() == most_waiting)
        return false;
    if (idle_ <= waiting_.size() && threads_.size() != most_threads) {
        const core::signals_blocked blocked;
        threads_.emplace_back([this] { run(); });
        pthread_setname_np(threads_.back().native_handle(), "weftio-mac");
    }
    waiting_.push_back(std::move(what));
    changed_.notify_one();
    return true;
}

std::optional<net::mac_address> mac_resolver::find(const question& of) const noexcept
try {
    if (net::is_group(of.peer))
        return net::mac_of_group(of.peer);
    const rdma::local_addresses::gid& ours = from_->gids.at(of.gid_index);
    rdma::local_addresses::require_same_kind("rdma_device", ours, of.peer);
    return ours.held->resolve(of.peer, of.patience);
} catch (const std::exception&) {
    return std::nullopt;
}

void mac_resolver::run()
{
    std::unique_lock lock(mutex_);
    for (;;) {
        ++idle_;
        changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
        --idle_;
        if (ending_)
            return;
        const question next = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        next.told(find(next));
        lock.lock();
    }
}

} // namespace weftio::connections
