// The connection manager of a port, which all listeners and connections of the process share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "connections/agent.hpp"
#include "connections/connection_end.hpp"

namespace weftio::connections {

/// Gets requests, in the thread of the manager.
class request_sink {
 public:
    /// @return why it is rejected; nothing: `end` waits for the user
    virtual std::optional<cm::rej> asked(const cm::event& request, const std::shared_ptr<connection_end>& end) = 0;

 protected:
    ~request_sink() = default;
};

/// Any thread.
class shared_manager {
 public:
    explicit shared_manager(const rdma_device& at);
    shared_manager(const shared_manager&) = delete;
    shared_manager& operator=(const shared_manager&) = delete;

    agent& speaker() noexcept { return agent_; }
    const rdma::local_addresses* addresses() const noexcept { return addresses_.get(); }
    /// Calls what(manager, now), without events in between.
    template <class What>
    auto call(What&& what)
    {
        return agent_.call(std::forward<What>(what));
    }
    /// Sends a REQ, of which `end` gets the events.
    cm::refusal connect(const cm::path& way, const cm::req& request, const std::shared_ptr<connection_end>& end,
                        std::uint32_t& id);
    /// @return the number of the listener, or why there is none
    cm::refusal listen(std::uint64_t service, const net::roce_gid& local, std::size_t backlog, request_sink& to,
                       std::uint32_t& listener);
    /// `to` of listen() is not called any more.
    void stop_listening(std::uint32_t listener);
    cm::refusal reject(std::uint32_t id, const cm::rej& reason);
    /// No more events of this connection. Whatever the peer must be told is told.
    void forget(std::uint32_t id);

 private:
    void told(const cm::event& next);
    void take_request(const cm::event& request);

    const std::shared_ptr<const rdma::local_addresses> addresses_;
    std::mutex listening_; ///< locked while a listener is told
    std::map<std::uint32_t, request_sink*> listeners_;
    std::mutex mutex_; ///< guards ends_
    std::map<std::uint32_t, std::shared_ptr<connection_end>> ends_;
    agent agent_; ///< the last member: its thread uses the others
};

/// A use of the manager of a port. The first makes it, and the last ends it: not from its own thread.
class manager_lease {
 public:
    /// @throws weftio::error as agent
    explicit manager_lease(const rdma_device& at);
    manager_lease(const manager_lease&) = delete;
    manager_lease& operator=(const manager_lease&) = delete;
    ~manager_lease();

    shared_manager& operator*() const noexcept { return *manager_; }
    shared_manager* operator->() const noexcept { return manager_; }
    const rdma_device& at() const noexcept { return at_; }
    nic::backend& nic() const noexcept;
    const rdma::local_addresses& addresses() const noexcept { return *addresses_; }

 private:
    const rdma_device at_;
    const std::shared_ptr<const rdma::local_addresses> addresses_;
    shared_manager* manager_;
};

} // namespace weftio::connections
