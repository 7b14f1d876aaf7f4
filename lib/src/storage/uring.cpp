// io_uring, by liburing.
#include <fcntl.h>
#include <fmt/format.h>
#include <liburing.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

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
        return "a seccomp filter forbids it, as those of containers do; run with one that allows io_uring_setup";
    if (failure == ENOSYS)
        return "the kernel has none, or a seccomp filter hides it; Linux 5.11 or newer has what is needed";
    if (failure == ENOMEM)
        return "no memory that may be locked is left; raise RLIMIT_MEMLOCK (ulimit -l)";
    return "see io_uring_setup(2)";
}

[[noreturn]] void refuse(int failure)
{
    throw error(errc::not_supported,
                fmt::format("weftio: files: io_uring is refused ({}): {}", std::strerror(failure), reason_of(failure)));
}

constexpr std::uint64_t not_ours = ~std::uint64_t{0}; ///< user data of cancellations

class uring_way final : public way {
 public:
    explicit uring_way(unsigned depth) : depth_(depth)
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
    }
    ~uring_way() override
    {
        while (in_flight_ != 0) {
            std::array<io_done, 16> done;
            wait(std::chrono::milliseconds(100));
            reap(done);
        }
        io_uring_queue_exit(&ring_);
    }

    bool submit(const io& io) override
    {
        if (in_flight_ == depth_)
            return false;
        io_uring_sqe* entry = next_entry();
        if (!entry)
            return false;
        prepare(*entry, io);
        io_uring_sqe_set_data64(entry, io.tag);
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
            if (const auto tag = io_uring_cqe_get_data64(entry); tag != not_ours)
                done[count++] = {tag, entry->res};
            io_uring_cqe_seen(&ring_, entry);
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
        io_uring_prep_cancel64(entry, tag, 0);
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
    static void prepare(io_uring_sqe& entry, const io& io)
    {
        // An offset of -1 is the descriptor's own position to io_uring. Any other beyond 2^63 is refused, as this one must be.
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
};

} // namespace

std::unique_ptr<way> make_uring(unsigned depth)
{
    return std::make_unique<uring_way>(depth);
}

} // namespace weftio::storage
