// The file of a wire in shared memory, and the slot that a member has there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wires/layout.hpp"

namespace weftio::wires {

constexpr const char* usual_folder = "/dev/shm";

/// The name of the file: /dev/shm/weftio-UID-NAME. @throws weftio::error errc::invalid_argument for a name with other
/// characters than letters, digits, '.', '_', '-', or with none or more than 64
/// @param who  begin of error texts: "port wire:x"
std::string path_of(std::string_view who, std::string_view name, const std::string& folder = usual_folder);

/// Whether a member holds the slot of an open wire; for the descriptor of a member, whether another one does. Any
/// thread; one system call.
bool is_held(int descriptor, unsigned slot) noexcept;

/// Opens or creates the file and takes a free slot; the destructor gives the slot back, and removes the file if no
/// member is left.
///
/// Who joins also removes the files of wires whose members have all been killed.
///
/// A member holds a lock on a byte of the file (F_OFD_SETLK). Linux releases it when the process has ended, however it
/// ended. A child of fork() closes its descriptor, which would keep the lock; one of clone(2) does not.
class wire_file {
 public:
    /// Blocks while others join or leave, 2 s at most. @throws weftio::error
    ///     - errc::invalid_argument   see path_of()
    ///     - errc::not_found          there is no such folder
    ///     - errc::permission_denied  the file is another user's
    ///     - errc::in_use             64 members have joined, or another process holds the lock for 2 s
    ///     - errc::not_supported      members of another version of Weftio live, or the file is no wire
    ///     - errc::out_of_memory      the folder's file system is full, or has no room for a channel in each direction
    wire_file(std::string who, std::string_view name, const std::string& folder);
    wire_file(const wire_file&) = delete;
    wire_file& operator=(const wire_file&) = delete;
    ~wire_file();

    const std::string& path() const noexcept { return path_; }
    head& shared() const noexcept { return *head_; }
    unsigned slot() const noexcept { return slot_; }
    int descriptor() const noexcept { return descriptor_; }
    /// Maps a ring. @return nullptr, with errno: it cannot be mapped, or is not in the file
    std::byte* map_ring(unsigned sender, unsigned receiver) const noexcept;
    /// Gives the ring memory, and maps it. @return nullptr, with errno: ENOSPC if the file system is full
    std::byte* make_ring(unsigned sender, unsigned receiver) const noexcept;

 private:
    void open();
    bool is_the_named_one() const noexcept;
    void require_own() const;
    void lock();
    void unlock() noexcept;
    static void leave_in_child() noexcept;
    void leave_in_children() noexcept;
    void make_or_check();
    void require_room() const;
    void make();
    void take_slot();
    [[noreturn]] void refuse_version(std::uint32_t theirs) const;
    [[noreturn]] void fail(int why) const;
    [[noreturn]] void fail_for_room(std::uint64_t bytes, int why) const;
    [[noreturn]] void fail_to_open(int why) const;
    void leave() noexcept;

    std::string who_, path_, folder_;
    int descriptor_ = -1;
    head* head_ = nullptr;
    unsigned slot_ = most_members; ///< most_members: none
};

} // namespace weftio::wires
