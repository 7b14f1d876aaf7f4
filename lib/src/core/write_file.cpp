#include "core/write_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/write_signals.hpp"

namespace weftio::core {

namespace {

int write_all(int descriptor, std::span<const std::uint8_t> bytes) noexcept
{
    const no_write_signals only_fails;
    while (!bytes.empty()) {
        const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            const int why = errno;
            only_fails.take();
            return why;
        }
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return 0;
}

} // namespace

int write_file(const std::string& path, std::span<const std::uint8_t> bytes) noexcept
{
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor < 0)
        return errno;
    const int failed = write_all(descriptor, bytes);
    const int closed = ::close(descriptor) != 0 ? errno : 0; // NFS writes it then
    return failed != 0 ? failed : closed;
}

} // namespace weftio::core
