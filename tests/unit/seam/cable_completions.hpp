// The completion queues of the cable NIC.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "cable_rdma.hpp"

namespace weftio::test {

/// Bits of an index that a completion contains.
inline constexpr std::uint32_t cable_index_mask = 0xffffff;

/// The content of a completion.
struct cable_completion {
    std::uint32_t queue = 0, user_index = 0, opcode = 0, entry_opcode = 0, index = 0, bytes = 0, immediate = 0;
    std::uint8_t syndrome = 0;
    bool solicited = false;
    cable_window* frees = nullptr; ///< when all bytes of the message are placed
};

void write_completion(weftio_cqe& to, const cable_completion& what, std::uint32_t pass);

/// For kernels that run the port in inline mode: `object` has run().
template <class Object>
nic::inline_turn turn_at(const nic::backend& port, Object& object) noexcept
{
    if (!port.is_inline())
        return {};
    return {.turn = [](void* at) { static_cast<Object*>(at)->run(); }, .context = &object};
}

class cable_completions final : public nic::completion_queue {
 public:
    cable_completions(std::shared_ptr<nic::backend> port, cable_tables& tables, const nic::completion_memory& memory)
        : tables(tables), port_(std::move(port)), memory_(memory)
    {
        const std::scoped_lock lock(tables.mutex);
        number_ = tables.last_number += 7;
        tables.completions.insert(this);
    }
    ~cable_completions() override
    {
        const std::scoped_lock lock(tables.mutex);
        tables.completions.erase(this);
    }
    std::uint32_t number() const noexcept override { return number_; }
    bool overrun() const noexcept override { return overrun_; }
    nic::inline_turn turn() noexcept override { return turn_at(*port_, *this); }
    void run() { port_->turn(); }

    /// Whether `count` completions may be written.
    bool has_room(std::uint32_t count) const
    {
        return memory_.overrun != completion_overrun::hold || overrun_ || has_places(count);
    }
    void put(const cable_completion& what)
    {
        if (memory_.overrun == completion_overrun::fail && !has_places(1))
            overrun_ = true;
        if (overrun_)
            return;
        std::byte* const end =
            memory_.entries.cpu<std::byte>() + (std::size_t{produced_ & (memory_.depth - 1)} + 1) * memory_.entry_bytes;
        write_completion(*reinterpret_cast<weftio_cqe*>(end - sizeof(weftio_cqe)), what, produced_ / memory_.depth);
        ++produced_;
        if (what.solicited || what.syndrome != 0)
            solicited_ = produced_;
    }
    /// Sends the event that an arming word requests.
    void tell()
    {
        const std::uint32_t word = weftio_load_acquire_sys_u32(record() + 1), asked = weftio_swap32(word);
        const std::uint32_t end = asked >> 24 & 1 ? solicited_ : produced_;
        const bool has_news = is_behind(end, asked) && is_behind(end, notified_);
        if (word == answered_ || !memory_.event || (!has_news && !overrun_))
            return;
        answered_ = word;
        notified_ = produced_;
        memory_.event();
    }

    cable_tables& tables;

 private:
    bool has_places(std::uint32_t count) const
    {
        const std::uint32_t consumed = weftio_swap32(weftio_load_acquire_sys_u32(record()));
        return ((produced_ - consumed) & cable_index_mask) + count <= memory_.depth;
    }
    static bool is_behind(std::uint32_t end, std::uint32_t index)
    {
        const std::uint32_t ahead = (end - index) & cable_index_mask;
        return ahead != 0 && ahead <= cable_index_mask / 2;
    }
    std::uint32_t* record() const { return memory_.record.cpu<std::uint32_t>(); }

    const std::shared_ptr<nic::backend> port_;
    const nic::completion_memory memory_;
    std::uint32_t number_ = 0, produced_ = 0, solicited_ = 0, notified_ = 0, answered_ = 0;
    std::atomic<bool> overrun_{false};
};

} // namespace weftio::test
