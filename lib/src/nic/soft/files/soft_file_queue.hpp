// A file queue of the software NIC, as the objects of files/ use it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "nic/soft/files/file_work.hpp"
#include "nic/soft/files/soft_files.hpp"
#include "nic/soft/work/soft_queue.hpp"

namespace weftio::nic::soft {

/// Keeps the engine alive. @see soft_queue
class at_files {
 protected:
    explicit at_files(std::shared_ptr<soft_files> files) noexcept : files_(std::move(files)) {}

    bool may_end() const noexcept { return files_->may_end(); }
    bool is_inline() const noexcept { return files_->is_inline(); }
    std::string where() const { return {}; }
    doorbell_pages& doorbells() const noexcept { return files_->doorbells(); }
    template <class Change>
    void between_turns(Change&& change) const
    {
        files_->engine().between_turns(change);
    }
    template <class Change>
    void between_all_turns(Change&& change) const
    {
        between_turns(change);
    }

    const std::shared_ptr<soft_files> files_;
};

class soft_file_queue final : public soft_executed_queue<file_send_queue, at_files, file_work> {
 public:
    soft_file_queue(std::shared_ptr<soft_files> files, const send_ring& ring);

    inline_turn turn() noexcept override { return turn_of(this); }
    void run_turn() const;
    file_queue_counters counters() const override;
    bool stopped() const noexcept override { return queue_->failed(); }
    void restart(const send_ring& ring) override;

 private:
    std::string progress() const override;
    std::string words_of(const send_event& event) const override;
    bool drain() override;
    void remove() noexcept override { files_->unit().queues().take(number_); }
};

} // namespace weftio::nic::soft
