#include "weftio/file.hpp"

#include "storage/synchronous.hpp"

namespace weftio {

using storage::io;

file::file(const file_engine& engine, int descriptor)
    : file_(storage::open_file::open(detail::internals::share(engine), descriptor))
{}
file::file(file&&) noexcept = default;
file& file::operator=(file&&) noexcept = default;
file::~file() = default;

file_result file::read(const file_memory& memory, std::size_t bytes, std::uint64_t offset) const
{
    return storage::transfer(file_, io::kind::read, detail::internals::place(memory), bytes, offset);
}

file_result file::write(const file_memory& memory, std::size_t bytes, std::uint64_t offset) const
{
    return storage::transfer(file_, io::kind::write, detail::internals::place(memory), bytes, offset);
}

file_result file::sync(bool data_only) const
{
    return storage::sync(*file_, data_only);
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
