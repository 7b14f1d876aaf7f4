#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "reader/byte_source.hpp"

namespace weftio::replay {

namespace {

constexpr int poll_ms = 20;

/// A descriptor whose first bytes can be read ahead.
class file_source final : public byte_source {
 public:
    file_source(const std::string& path, const std::atomic<bool>* stop) : stop_(stop), owned_(path != "-")
    {
        fd_ = owned_ ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
        struct stat about {};
        if (fd_ < 0 || ::fstat(fd_, &about) != 0)
            throw open_error(
                fmt::format("weftio-replay: {}: {}; name a capture file that can be read, or - for standard input",
                            path, std::strerror(errno)));
        if (S_ISDIR(about.st_mode)) {
            close();
            throw open_error(fmt::format("weftio-replay: {}: a directory; name the capture files in it", path));
        }
        regular_ = S_ISREG(about.st_mode);
        if (regular_)
            ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    file_source(const file_source&) = delete;
    file_source& operator=(const file_source&) = delete;
    ~file_source() override { close(); }

    std::size_t read(std::byte* to, std::size_t bytes) override
    {
        if (head_at_ < head_count_) {
            std::size_t count = std::min(bytes, head_count_ - head_at_);
            std::copy_n(head_.data() + head_at_, count, to);
            head_at_ += count;
            return count;
        }
        return read_descriptor(to, bytes);
    }

    std::uint64_t skip(std::uint64_t bytes) override
    {
        struct stat about {};
        if (!regular_ || head_at_ < head_count_ || ::fstat(fd_, &about) != 0)
            return 0;
        off_t at = ::lseek(fd_, 0, SEEK_CUR);
        if (at < 0 || about.st_size <= at)
            return 0;
        std::uint64_t count = std::min(bytes, static_cast<std::uint64_t>(about.st_size - at));
        return ::lseek(fd_, static_cast<off_t>(count), SEEK_CUR) < 0 ? 0 : count;
    }

    bool rewind() override
    {
        if (!regular_ || ::lseek(fd_, 0, SEEK_SET) != 0)
            return false;
        head_count_ = head_at_ = 0;
        failure_.clear();
        return true;
    }

    std::optional<double> share() const override
    {
        struct stat about {};
        off_t at = regular_ ? ::lseek(fd_, 0, SEEK_CUR) : -1;
        if (at < 0 || ::fstat(fd_, &about) != 0 || about.st_size == 0)
            return std::nullopt;
        return std::min(1.0, static_cast<double>(at) / static_cast<double>(about.st_size));
    }

    /// Returns the first bytes, at most four; read() returns them again.
    std::uint32_t magic()
    {
        while (head_count_ < head_.size()) {
            std::size_t count = read_descriptor(head_.data() + head_count_, head_.size() - head_count_);
            if (count == 0)
                return 0;
            head_count_ += count;
        }
        std::uint32_t value = 0;
        std::memcpy(&value, head_.data(), sizeof value);
        return value;
    }

 private:
    std::size_t read_descriptor(std::byte* to, std::size_t bytes)
    {
        while (!stopped() && failure_.empty()) {
            if (!regular_ && !readable())
                continue;
            ssize_t count = ::read(fd_, to, bytes);
            if (count >= 0)
                return static_cast<std::size_t>(count);
            if (errno != EINTR && errno != EAGAIN)
                failure_ = fmt::format("cannot be read ({})", std::strerror(errno));
        }
        return 0;
    }

    bool readable() const
    {
        pollfd wanted{.fd = fd_, .events = POLLIN, .revents = 0};
        return ::poll(&wanted, 1, poll_ms) > 0;
    }

    /// Whether to stop waiting. False for regular files, which never wait.
    bool stopped() const { return stop_ && !regular_ && stop_->load(std::memory_order_relaxed); }

    void close() const
    {
        if (owned_ && fd_ >= 0)
            ::close(fd_);
    }

    const std::atomic<bool>* stop_;
    bool owned_, regular_ = false;
    int fd_ = -1;
    std::array<std::byte, 4> head_{};
    std::size_t head_count_ = 0, head_at_ = 0;
};

class memory_source final : public byte_source {
 public:
    memory_source(const std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

    std::size_t read(std::byte* to, std::size_t bytes) override
    {
        std::size_t count = std::min(bytes, bytes_ - at_);
        std::copy_n(data_ + at_, count, to);
        at_ += count;
        return count;
    }

    bool rewind() override
    {
        at_ = 0;
        return true;
    }

 private:
    const std::byte* data_;
    std::size_t bytes_, at_ = 0;
};

} // namespace

std::unique_ptr<byte_source> open_source(const std::string& path, const std::atomic<bool>* stop)
{
    constexpr std::uint32_t gzip_magic = 0x8b1f, zstd_magic = 0xfd2fb528, skippable_magic = 0x184d2a50;
    constexpr std::uint32_t xz_magic = 0x587a37fd, bzip2_magic = 0x685a42;
    auto file = std::make_unique<file_source>(path, stop);
    std::uint32_t magic = file->magic();
    if ((magic & 0xffff) == gzip_magic)
        return make_gzip_source(std::move(file));
    if (magic == zstd_magic || (magic & 0xfffffff0u) == skippable_magic)
        return make_zstd_source(std::move(file));
    if (magic == xz_magic)
        return make_xz_source(std::move(file));
    if ((magic & 0xffffff) == bzip2_magic)
        return make_bzip2_source(std::move(file));
    return file;
}

std::unique_ptr<byte_source> make_memory_source(const void* data, std::size_t bytes)
{
    return std::make_unique<memory_source>(static_cast<const std::byte*>(data), bytes);
}

} // namespace weftio::replay
