// The interface between files/ and an engine of file queues: what such an engine must be able to do.
#pragma once

#include <memory>

#include "nic/backend.hpp"
#include "storage/named_files.hpp"
#include "weftio/options.hpp"

namespace weftio::storage {
class context;
} // namespace weftio::storage

namespace weftio::nic {

class file_send_queue : public send_queue {
 public:
    virtual file_queue_counters counters() const = 0;
    /// As failed(), but does not wait for the current turn, whose result may be visible only later.
    virtual bool stopped() const noexcept = 0;
};

/// Executes the entries of the file queues of one weftio::file_engine. Any thread may call it. Queues and regions that
/// it makes keep it alive.
class file_backend : public memory_user, public storage::file_user {
 public:
    virtual bool is_inline() const noexcept = 0;
    /// Inline mode: runs one turn. Returns how much the turn moved.
    virtual unsigned turn() = 0;
    /// @param ring  `results` is set
    /// @throws weftio::error errc::out_of_memory
    virtual std::shared_ptr<file_send_queue> make_queue(const send_ring& ring) = 0;
};

/// Makes the engine that executes entries through the I/O ways of `files` (storage::way), in its own thread or inside
/// turn().
/// @throws weftio::error errc::invalid_argument a core or a priority that does not exist; errc::permission_denied a
///   real-time priority without CAP_SYS_NICE; errc::out_of_memory all numbers of NICs are taken; errc::device_error no
///   thread can be made
std::shared_ptr<file_backend> make_soft_files(std::shared_ptr<storage::context> files);

} // namespace weftio::nic
