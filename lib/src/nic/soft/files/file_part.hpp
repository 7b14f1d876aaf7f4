// Parts of the entries of file queues, as the engine has them under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "storage/named_files.hpp"
#include "storage/way.hpp"

namespace weftio::nic::soft {

class file_lane;
class file_work;

/// A file, as an entry has found it by its key.
using held_file = storage::named_files::named_file;

/// Bytes of an entry that go through the way as one.
struct file_part {
    enum class phase : std::uint8_t {
        free,
        to_way,  ///< the way had no room
        in_way,  ///< the way has it
        in_copy, ///< a copy engine has it, before a write or behind a read
    };

    file_work* queue = nullptr; ///< nullptr: the queue has gone
    std::uint32_t index = 0;    ///< of the entry, in its ring
    storage::io::kind what = storage::io::kind::read;
    phase at = phase::free;
    held_file file{};
    std::uint64_t offset = 0; ///< in the file
    std::uint64_t begin = 0;  ///< in the entry
    std::uint32_t bytes = 0, done = 0;
    std::byte* address = nullptr; ///< as the CPU has it: of the memory of the entry, or of a slot of `lane`
    std::uint32_t key = 0;        ///< of the memory; 0: none
    file_lane* lane = nullptr;    ///< of the device whose memory it is; nullptr: the CPU's
    std::byte* device = nullptr;  ///< of the memory of the entry, as its device has it
    std::uint64_t batch = 0;      ///< of the lane
};

/// What became of one.
struct part_result {
    std::uint64_t begin = 0;
    std::uint32_t bytes = 0; ///< that were asked for
    std::uint32_t done = 0;
    int error = 0; ///< errno
    bool device_failed = false;
};

} // namespace weftio::nic::soft
