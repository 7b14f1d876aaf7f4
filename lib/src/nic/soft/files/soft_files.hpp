// The engine of file queues: its only unit is their list; the I/O ways are those of a file_engine.
#pragma once

#include <memory>
#include <mutex>

#include "core/process.hpp"
#include "keys/key_table.hpp"
#include "nic/file_backend.hpp"
#include "nic/soft/engine/engine.hpp"
#include "nic/soft/files/file_entry.hpp"
#include "nic/soft/files/file_unit.hpp"
#include "storage/context.hpp"

namespace weftio::nic::soft {

/// The files of a context.
class context_files final : public file_keys {
 public:
    explicit context_files(std::shared_ptr<storage::context> context) noexcept : context_(std::move(context)) {}

    bool find(std::uint32_t key, held_file& out) const noexcept override;
    storage::measured begin(std::uint64_t bytes, const devices::device_backend* owner) const noexcept override
    {
        return context_->counts.level() == 0 ? storage::measured{} : context_->counts.begin(bytes, owner);
    }
    void count(storage::io::kind what, const file_result& result, const storage::measured& how) const noexcept override;
    bool strict() const noexcept override { return context_->options().strict; }
    storage::context& context() const noexcept { return *context_; }

 private:
    const std::shared_ptr<storage::context> context_;
};

class soft_files final : public file_backend, public std::enable_shared_from_this<soft_files>, core::moving {
 public:
    explicit soft_files(std::shared_ptr<storage::context> context);
    ~soft_files() { leave(); }

    std::unique_ptr<region> register_memory(const region_request& wanted) override;
    bool is_inline() const noexcept override { return !engine_.has_thread(); }
    unsigned turn() override { return engine_.turn(); }
    std::shared_ptr<file_send_queue> make_queue(const send_ring& ring) override;
    void collect() override;
    bool stand_still() noexcept override { return engine_.stop_turns(); }

    bool may_end() const noexcept { return maker_.may_end(); }
    keys::nic_keys& keys() noexcept { return keys_; }
    const file_keys& files() const noexcept { return files_; }
    storage::context& context() const noexcept { return files_.context(); }
    file_unit& unit() noexcept { return unit_; } ///< between two turns only, except functions documented otherwise
    nic::soft::engine& engine() noexcept { return engine_; }
    doorbell_pages& doorbells() noexcept { return doorbells_; }
    /// Makes the copy engine and slots for a device whose memory the CPU cannot access. Throws what make_copy_queue()
    /// and allocate() throw.
    void reach(const std::shared_ptr<devices::device_backend>& device);
    /// Blocks until no part in flight uses the memory of that key. @pre no entry finds it any more
    void wait_for(std::uint32_t key) noexcept;
    /// Abandons these parts instead, and adds copies that are under way to memory_block::unfinished. Returns false if
    /// the CPU accesses the memory, or there is no memory for it.
    bool leave_copies(std::uint32_t key, const devices::memory_block& memory) noexcept;

 private:
    const core::maker maker_{};
    std::mutex reaching_;
    const context_files files_;
    keys::nic_keys keys_{"file_engine"};
    doorbell_pages doorbells_;
    file_unit unit_;
    nic::soft::engine engine_; ///< declared last, so that it stops before the other members are destroyed
};

} // namespace weftio::nic::soft
