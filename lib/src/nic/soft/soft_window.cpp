#include "nic/soft/soft_window.hpp"

#include <utility>

namespace weftio::nic::soft {

soft_window::soft_window(std::shared_ptr<soft_port> port, window_type type, protection_domain domain)
    : port_(std::move(port)), key_(port_->keys().add_window(type, domain))
{}

soft_window::~soft_window()
{
    if (!port_->may_end())
        return;
    keys::key_table& table = port_->keys().table();
    // Who waits for an engine waits until its thread is awake: a program may have 100,000 windows.
    if (table.withdraw_window(key_) && !port_->engines().sleep())
        port_->forget_key(key_);
    else
        port_->keys().forget(key_);
    table.release_window(key_);
}

memory_window_standing soft_window::standing() const noexcept
{
    const keys::window_view seen = port_->keys().table().window(key_);
    return {.rkey = seen.key, .type = seen.type, .bound = seen.valid, .region = seen.region, .domain = seen.domain};
}

} // namespace weftio::nic::soft
