// Parts of the entries of file queues, as the engine has them in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "storage/named_files.hpp"
#include "storage/way.hpp"

namespace weftio::nic::soft {

class staging_stream;
class file_work;

/// A file, as an entry has found it by its key.
using held_file = storage::named_files::named_file;

/// Bytes of an entry that are submitted as one operation.
struct file_part {
    enum class phase : std::uint8_t {
        free,
        to_way,  ///< waits: there was no room to submit it
        in_way,  ///< submitted to the way
        in_copy, ///< a copy engine copies it, before a write or after a read
    };

    file_work* queue = nullptr; ///< nullptr: the queue has been removed
    std::uint32_t index = 0;    ///< ring index of the entry
    storage::io::kind what = storage::io::kind::read;
    phase at = phase::free;
    held_file file{};
    std::uint64_t offset = 0; ///< offset in the file
    std::uint64_t begin = 0;  ///< offset in the entry
    std::uint32_t bytes = 0, done = 0;
    std::byte* address = nullptr;     ///< CPU address: in the memory of the entry, or in a slot of `stream`
    std::uint32_t key = 0;            ///< key of the memory; 0: none
    staging_stream* stream = nullptr; ///< copy engine and slots of the memory's device; nullptr: the CPU needs none
    std::byte* device = nullptr;      ///< device address in the memory of the entry; nullptr: abandoned
    std::uint64_t batch = 0;          ///< batch of the stream
};

/// The result of a part.
struct part_result {
    std::uint64_t begin = 0;
    std::uint32_t bytes = 0; ///< bytes requested
    std::uint32_t done = 0;
    int error = 0; ///< errno
    bool device_failed = false;
};

} // namespace weftio::nic::soft
