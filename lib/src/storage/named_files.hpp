// The files of an engine, as the entries of kernels name them.
#pragma once

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

namespace weftio::storage {

class open_file;

/// What executes the entries of kernels.
class file_user {
 public:
    virtual ~file_user() = default;
    /// Takes up what has ended, so that files and memory are let go. Blocks as long as one turn of an engine.
    virtual void collect() = 0;
};

/// Keys, and the descriptors that they stand for. A descriptor that was found is in use as long as named_file::use.
class named_files {
 public:
    struct named_file {
        int descriptor = -1;
        std::uint64_t name = 0;      ///< of the descriptor, see registrations
        open_file* direct = nullptr; ///< opened with O_DIRECT: the file, which stays as long as `use`
        std::uint32_t offset_align = 1, memory_align = 1; ///< what O_DIRECT wants
        std::shared_ptr<const void> use{};
    };

    void enter(open_file& file);
    /// Any thread. @return whether a file has the key
    bool find(std::uint32_t key, named_file& out) const noexcept;
    /// Nobody finds the key any more. Blocks until the descriptor is in use no more. @param user  that has used it
    void leave(std::uint32_t key, const std::weak_ptr<file_user>& user) noexcept;

 private:
    mutable std::shared_mutex mutex_;
    std::unordered_map<std::uint32_t, named_file> files_;
};

} // namespace weftio::storage
