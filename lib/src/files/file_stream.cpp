// Operations in the order of a stream.
#include <cerrno>
#include <limits>

#include "storage/synchronous.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"

namespace weftio {

namespace {

std::int64_t execute(const std::shared_ptr<storage::open_file>& file, storage::io::kind what, const file_memory& memory,
                     const file::at_execution& arguments)
try {
    const std::int64_t offset = *arguments.offset, memory_offset = *arguments.memory_offset;
    if (offset < 0 || memory_offset < 0)
        return -EINVAL;
    const storage::place place = detail::internals::place(memory, static_cast<std::size_t>(memory_offset));
    const file_result result =
        storage::transfer(file, what, place, *arguments.bytes, static_cast<std::uint64_t>(offset));
    return result.ok() ? result.bytes : -result.error;
} catch (const std::exception&) { // no memory
    return -ENOMEM;
}

void enqueue(const std::shared_ptr<storage::open_file>& file, storage::io::kind what, void* stream,
             const file_memory& memory, const file::at_execution& arguments)
{
    if (!arguments.bytes || !arguments.offset || !arguments.memory_offset || !arguments.result)
        throw error(errc::invalid_argument, "weftio: file: a pointer of file::at_execution is null; point each to the "
                                            "value's location when the stream executes the operation");
    file->engine().require_process();
    file->engine().enqueue(stream, [=] { *arguments.result = execute(file, what, memory, arguments); });
}

} // namespace

void file::read_on(void* stream, const file_memory& memory, const at_execution& arguments) const
{
    enqueue(file_, storage::io::kind::read, stream, memory, arguments);
}

void file::write_on(void* stream, const file_memory& memory, const at_execution& arguments) const
{
    enqueue(file_, storage::io::kind::write, stream, memory, arguments);
}

void file_engine::drain() const
{
    context_->require_process();
    context_->drain();
}

} // namespace weftio
