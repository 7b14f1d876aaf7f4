// pread and pwrite, by threads.
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/signals.hpp"
#include "devices/backend.hpp"
#include "storage/vendor_library.hpp"
#include "storage/way.hpp"

namespace weftio::storage {

namespace {

struct job;

/// Where the threads of a pool put what they have executed for one way.
struct mailbox {
    std::mutex mutex;
    std::condition_variable filled;
    std::vector<job*> done; ///< has room for `depth`
};

/// An io on its way through a pool: it belongs to its way, and is in one list at a time.
struct job {
    storage::io io;
    std::int64_t result = 0;
    mailbox* to = nullptr;
    job* next = nullptr;
};

void answer(job& job, std::int64_t result)
{
    job.result = result;
    mailbox& box = *job.to;
    // Notified under the lock: the way, and its mailbox with it, may end as soon as it has the result.
    const std::lock_guard lock(box.mutex);
    box.done.push_back(&job);
    box.filled.notify_one();
}

std::int64_t once(const io& io) noexcept
{
    const auto offset = static_cast<off_t>(io.offset);
    switch (io.what) {
        case io::kind::read: return pread(io.fd, io.address, io.bytes, offset);
        case io::kind::write: return pwrite(io.fd, io.address, io.bytes, offset);
        case io::kind::sync: return fsync(io.fd);
        case io::kind::data_sync: return fdatasync(io.fd);
    }
    return 0;
}

/// As the io's owner of the memory.
std::int64_t by_vendor(const io& io) noexcept
{
    const vendor_use& use = *io.vendor;
    std::byte* const base = use.base ? use.base : io.address;
    if (use.owner)
        use.owner->enter_thread();
    const std::int64_t result =
        use.file->library().transfer(io.what == io::kind::write, use.file->handle(), base,
                                     static_cast<std::size_t>(io.address - base), io.bytes, io.offset);
    if (use.owner)
        use.owner->leave_thread();
    return result;
}

} // namespace

std::int64_t execute(const io& io) noexcept
{
    if (io.vendor)
        return by_vendor(io);
    for (;;) {
        const std::int64_t result = once(io);
        if (result >= 0)
            return result;
        if (errno != EINTR)
            return -errno;
    }
}

class posix_pool {
 public:
    explicit posix_pool(unsigned most) : most_(most) { threads_.reserve(most); }
    posix_pool(const posix_pool&) = delete;
    posix_pool& operator=(const posix_pool&) = delete;
    ~posix_pool()
    {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        work_.notify_all();
        for (std::thread& thread : threads_)
            thread.join();
    }

    /// Takes jobs; they stay their way's, and in their places until they are in the mailbox.
    /// @return false: there is no thread, and none can be made
    bool add(job* first, job* last, std::size_t count)
    {
        const std::lock_guard lock(mutex_);
        if (!start_threads(count))
            return false;
        last->next = nullptr;
        (last_ ? last_->next : first_) = first;
        last_ = last;
        waiting_ += count;
        count == 1 ? work_.notify_one() : work_.notify_all();
        return true;
    }
    /// Takes the job of that way with that tag out, if no thread has begun it; nullptr: one has.
    job* take_back(const mailbox* to, std::uint64_t tag)
    {
        const std::lock_guard lock(mutex_);
        job* before = nullptr;
        for (job* each = first_; each; before = each, each = each->next) {
            if (each->to != to || each->io.tag != tag)
                continue;
            (before ? before->next : first_) = each->next;
            if (last_ == each)
                last_ = before;
            --waiting_;
            return each;
        }
        return nullptr;
    }

 private:
    bool start_threads(std::size_t more)
    {
        while (threads_.size() < most_ && idle_ < waiting_ + more) {
            const core::signals_blocked for_the_thread;
            try {
                threads_.emplace_back([this] { run(); });
                ++idle_;
            } catch (const std::system_error&) {
                break; // those that run serve all
            }
        }
        return !threads_.empty();
    }
    void run()
    {
        std::unique_lock lock(mutex_);
        for (;;) {
            work_.wait(lock, [this] { return first_ || ends_; });
            if (!first_)
                return;
            job* taken = first_;
            first_ = taken->next;
            if (!first_)
                last_ = nullptr;
            --waiting_;
            --idle_;
            lock.unlock();
            answer(*taken, execute(taken->io));
            lock.lock();
            ++idle_;
        }
    }
    const std::size_t most_;
    std::mutex mutex_;
    std::condition_variable work_;
    std::vector<std::thread> threads_;
    job* first_ = nullptr;
    job* last_ = nullptr;
    std::size_t waiting_ = 0; ///< jobs in the list
    std::size_t idle_ = 0;    ///< threads that execute none
    bool ends_ = false;
};

namespace {

class posix_way final : public way {
 public:
    posix_way(unsigned depth, std::shared_ptr<posix_pool> pool) : jobs_(depth), pool_(std::move(pool))
    {
        box_.done.reserve(depth);
        free_.reserve(depth);
        for (job& each : jobs_) {
            each.to = &box_;
            free_.push_back(&each);
        }
    }
    ~posix_way() override
    {
        flush();
        std::unique_lock lock(box_.mutex);
        box_.filled.wait(lock, [this] { return box_.done.size() == in_flight_; });
    }

    bool submit(const io& io) override
    {
        if (in_flight_ == jobs_.size())
            return false;
        job* taken = free_.back();
        free_.pop_back();
        taken->io = io;
        taken->next = nullptr;
        ++in_flight_;
        (last_ ? last_->next : first_) = taken;
        last_ = taken;
        ++queued_;
        return true;
    }
    void flush() override
    {
        if (!first_)
            return;
        if (!pool_->add(first_, last_, queued_))
            fail_all();
        first_ = last_ = nullptr;
        queued_ = 0;
    }
    std::size_t reap(std::span<io_done> done) override
    {
        const std::lock_guard lock(box_.mutex);
        std::size_t count = 0;
        for (; count < done.size() && !box_.done.empty(); ++count) {
            job* ended = box_.done.back();
            box_.done.pop_back();
            done[count] = {ended->io.tag, ended->result};
            free_.push_back(ended);
        }
        in_flight_ -= count;
        return count;
    }
    std::size_t in_flight() const noexcept override { return in_flight_; }
    void wait(std::chrono::nanoseconds timeout) override
    {
        flush();
        std::unique_lock lock(box_.mutex);
        box_.filled.wait_for(lock, timeout, [this] { return !box_.done.empty() || in_flight_ == 0; });
    }
    void cancel(std::uint64_t tag) override
    {
        flush();
        if (job* taken = pool_->take_back(&box_, tag))
            answer(*taken, -ECANCELED);
    }
    file_way name() const noexcept override { return file_way::posix; }

 private:
    void fail_all()
    {
        for (job *each = first_, *next = nullptr; each; each = next) {
            next = each->next;
            answer(*each, -ENOMEM); // no thread can be made
        }
    }

    std::vector<job> jobs_;
    std::vector<job*> free_;
    mailbox box_;
    std::shared_ptr<posix_pool> pool_;
    std::size_t in_flight_ = 0, queued_ = 0;
    job *first_ = nullptr, *last_ = nullptr;
};

} // namespace

std::shared_ptr<posix_pool> make_posix_pool(unsigned threads)
{
    return std::make_shared<posix_pool>(threads);
}

std::unique_ptr<way> make_posix(unsigned depth, std::shared_ptr<posix_pool> pool)
{
    return std::make_unique<posix_way>(depth, std::move(pool));
}

} // namespace weftio::storage
