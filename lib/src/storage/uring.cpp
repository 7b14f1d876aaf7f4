// io_uring, by liburing.
#include <fcntl.h>
#include <fmt/format.h>
#include <liburing.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "storage/uring_tables.hpp"
#include "storage/way.hpp"
#include "weftio/error.hpp"

namespace weftio::storage {

namespace {

/// Why the system refuses io_uring, as far as it can be known, and what to do.
std::string reason_of(int failure)
{
    int disabled = 0;
    std::ifstream("/proc/sys/kernel/io_uring_disabled") >> disabled;
    if (failure == EPERM && disabled != 0)
        return fmt::format("kernel.io_uring_disabled is {}; set it to 0, or allow this user's group", disabled);
    if (failure == EPERM)
        return "a seccomp filter denies it, as in many containers; use a filter that allows io_uring_setup";
    if (failure == ENOSYS)
        return "the kernel lacks it, or a seccomp filter hides it; use Linux 5.11 or newer";
    if (failure == ENOMEM)
        return "the limit of locked memory is reached; raise RLIMIT_MEMLOCK (ulimit -l)";
    return "see io_uring_setup(2)";
}

[[noreturn]] void refuse(int failure)
{
    throw error(errc::not_supported, fmt::format("weftio: files: io_uring is unavailable ({}): {}",
                                                 std::strerror(failure), reason_of(failure)));
}

constexpr std::uint64_t not_ours = ~std::uint64_t{0}; ///< user data of cancellations
/// In user data: what follows is no tag, but the number of an io into registered memory.
constexpr std::uint64_t is_fixed = std::uint64_t{1} << 63;

/// Whether an io into registered memory is to be tried without: its registration may have ended meanwhile, or the file
/// takes none.
bool refuses_fixed(int result)
{
    return result == -EFAULT || result == -EINVAL || result == -EOPNOTSUPP;
}

class uring_way final : public way {
 public:
    uring_way(unsigned depth, registrations* names) : depth_(depth)
    {
        io_uring_params parameters{};
        parameters.flags = IORING_SETUP_CLAMP;
        const int status = io_uring_queue_init_params(depth, &ring_, &parameters);
        if (status < 0)
            refuse(-status);
        if ((parameters.features & IORING_FEAT_EXT_ARG) == 0) {
            io_uring_queue_exit(&ring_);
            refuse(ENOSYS);
        }
        if (names)
            keep_tables(*names);
    }
    ~uring_way() override
    {
        while (in_flight_ != 0) {
            std::array<io_done, 16> done;
            wait(std::chrono::milliseconds(100));
            reap(done);
        }
        tables_.reset();
        io_uring_queue_exit(&ring_);
    }

    bool submit(const io& io) override
    {
        if (in_flight_ == depth_)
            return false;
        io_uring_sqe* entry = next_entry();
        if (!entry)
            return false;
        begin(*entry, io);
        ++in_flight_;
        return true;
    }
    void flush() override
    {
        if (io_uring_sq_ready(&ring_) != 0)
            io_uring_submit(&ring_); // what EAGAIN or EBUSY leaves in the ring is submitted by the next call
    }
    std::size_t reap(std::span<io_done> done) override
    {
        std::size_t count = 0;
        io_uring_cqe* entry = nullptr;
        while (count < done.size() && io_uring_peek_cqe(&ring_, &entry) == 0) {
            const std::uint64_t data = io_uring_cqe_get_data64(entry);
            const int result = entry->res;
            io_uring_cqe_seen(&ring_, entry);
            if (data == not_ours)
                continue;
            if ((data & is_fixed) == 0)
                done[count++] = {data, result};
            else if (const auto ended = end_fixed(data, result))
                done[count++] = *ended;
        }
        in_flight_ -= count;
        return count;
    }
    std::size_t in_flight() const noexcept override { return in_flight_; }
    void wait(std::chrono::nanoseconds timeout) override
    {
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
        __kernel_timespec limit{seconds.count(), (timeout - seconds).count()};
        io_uring_cqe* entry = nullptr;
        io_uring_submit_and_wait_timeout(&ring_, &entry, 1, &limit, nullptr);
    }
    void cancel(std::uint64_t tag) override
    {
        io_uring_sqe* entry = next_entry();
        if (!entry)
            return;
        io_uring_prep_cancel64(entry, data_of(tag), 0);
        io_uring_sqe_set_data64(entry, not_ours);
        flush();
    }
    file_way name() const noexcept override { return file_way::uring; }

 private:
    io_uring_sqe* next_entry()
    {
        io_uring_sqe* entry = io_uring_get_sqe(&ring_);
        if (entry)
            return entry;
        flush();
        return io_uring_get_sqe(&ring_);
    }
    void begin(io_uring_sqe& entry, const io& io)
    {
        prepare(entry, io);
        io_uring_sqe_set_data64(&entry, io.tag);
        if (!tables_)
            return;
        if (const int slot = tables_->file(io.file, io.fd); slot >= 0) {
            entry.fd = slot;
            entry.flags |= IOSQE_FIXED_FILE;
        }
        if (const int slot = tables_->memory(io.memory, io.bytes); slot >= 0) {
            entry.opcode = io.what == io::kind::read ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED;
            entry.buf_index = static_cast<std::uint16_t>(slot);
            io_uring_sqe_set_data64(&entry, keep(io));
        }
    }
    void keep_tables(registrations& names)
    {
        tables_.emplace(ring_, names);
        fixed_.resize(depth_);
        for (std::size_t number = depth_; number-- > 0;)
            free_fixed_.push_back(number);
    }
    /// Keeps an io into registered memory, as it may have to be begun anew. @return its user data
    std::uint64_t keep(const io& io)
    {
        const std::size_t number = free_fixed_.back(); // no more than depth_ are in flight
        free_fixed_.pop_back();
        fixed_[number] = io;
        return is_fixed | number;
    }
    /// nullopt: it was begun anew, without registered memory.
    std::optional<io_done> end_fixed(std::uint64_t data, int result)
    {
        const std::size_t number = data & ~is_fixed;
        io again = *fixed_[number];
        fixed_[number].reset();
        free_fixed_.push_back(number);
        if (!refuses_fixed(result))
            return io_done{again.tag, result};
        again.memory = 0;
        io_uring_sqe* entry = next_entry();
        if (!entry)
            return io_done{again.tag, -EAGAIN};
        begin(*entry, again);
        flush();
        return {};
    }
    std::uint64_t data_of(std::uint64_t tag) const
    {
        const auto kept =
            std::find_if(fixed_.begin(), fixed_.end(), [=](const auto& each) { return each && each->tag == tag; });
        return kept == fixed_.end() ? tag : is_fixed | static_cast<std::uint64_t>(kept - fixed_.begin());
    }
    static void prepare(io_uring_sqe& entry, const io& io)
    {
        // An offset of -1 is the descriptor's own position to io_uring. Any other beyond 2^63 is refused, as this one
        // must be.
        const std::uint64_t offset = io.offset == UINT64_MAX ? io.offset - 1 : io.offset;
        switch (io.what) {
            case io::kind::read: io_uring_prep_read(&entry, io.fd, io.address, io.bytes, offset); break;
            case io::kind::write: io_uring_prep_write(&entry, io.fd, io.address, io.bytes, offset); break;
            case io::kind::sync: io_uring_prep_fsync(&entry, io.fd, 0); break;
            case io::kind::data_sync: io_uring_prep_fsync(&entry, io.fd, IORING_FSYNC_DATASYNC); break;
        }
    }

    io_uring ring_{};
    const std::size_t depth_;
    std::size_t in_flight_ = 0;
    std::optional<uring_tables> tables_;
    std::vector<std::optional<io>> fixed_; ///< ios into registered memory that are in flight
    std::vector<std::size_t> free_fixed_;  ///< numbers of places in fixed_
};

} // namespace

std::unique_ptr<way> make_uring(unsigned depth, registrations* names)
{
    return std::make_unique<uring_way>(depth, names);
}

} // namespace weftio::storage
