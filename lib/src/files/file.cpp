#include "weftio/file.hpp"

#include <algorithm>
#include <cerrno>

#include "storage/open_file.hpp"
#include "storage/place.hpp"

namespace weftio {

using storage::io;

namespace {

constexpr std::size_t most_bytes_at_once = std::size_t{1} << 30;

file_result transfer(const storage::open_file& file, io::kind what, std::byte* address, std::size_t bytes,
                     std::uint64_t offset)
{
    file.engine().require_process();
    file_result result{.way = file_way::posix, .fall = file.engine().without_uring(), .position = offset};
    while (static_cast<std::size_t>(result.bytes) < bytes) {
        const auto done = static_cast<std::size_t>(result.bytes);
        const std::int64_t more =
            storage::execute({what, file.descriptor(), offset + done, address + done,
                              static_cast<std::uint32_t>(std::min(bytes - done, most_bytes_at_once))});
        if (more < 0)
            result.error = static_cast<int>(-more);
        if (more <= 0)
            break;
        result.bytes += more;
    }
    result.position += static_cast<std::uint64_t>(result.bytes);
    file.engine().counts.add(what, result);
    return result;
}

} // namespace

file::file(const file_engine& engine, int descriptor)
    : file_(storage::open_file::open(detail::internals::share(engine), descriptor))
{}
file::file(file&&) noexcept = default;
file& file::operator=(file&&) noexcept = default;
file::~file() = default;

file_result file::read(const file_memory& memory, std::size_t bytes, std::uint64_t offset) const
{
    return transfer(*file_, io::kind::read, detail::internals::place(memory).cpu, bytes, offset);
}

file_result file::write(const file_memory& memory, std::size_t bytes, std::uint64_t offset) const
{
    return transfer(*file_, io::kind::write, detail::internals::place(memory).cpu, bytes, offset);
}

file_result file::sync(bool data_only) const
{
    file_->engine().require_process();
    const io::kind what = data_only ? io::kind::data_sync : io::kind::sync;
    const std::int64_t status = storage::execute({.what = what, .fd = file_->descriptor()});
    const file_result result{.error = status < 0 ? static_cast<int>(-status) : 0, .way = file_way::posix};
    file_->engine().counts.add(what, result);
    return result;
}

int file::descriptor() const noexcept
{
    return file_->descriptor();
}
bool file::direct() const noexcept
{
    return file_->direct();
}
std::uint32_t file::key() const noexcept
{
    return file_->key();
}

const std::shared_ptr<storage::open_file>& detail::internals::share(const file& file) noexcept
{
    return file.file_;
}

} // namespace weftio
