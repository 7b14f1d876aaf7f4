#include "storage/open_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "weftio/error.hpp"

namespace weftio::storage {

open_file::open_file(std::shared_ptr<context> engine, int descriptor)
    : engine_(std::move(engine)), descriptor_(descriptor)
{
    engine_->require_process();
    const int flags = fcntl(descriptor, F_GETFL);
    struct stat about {};
    if (flags < 0 || fstat(descriptor, &about) != 0)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: file: descriptor {} is not open ({}); pass one of open(2)", descriptor,
                                std::strerror(errno)));
    if (!S_ISREG(about.st_mode) && !S_ISBLK(about.st_mode))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: file: descriptor {} is neither a regular file nor a block device, and has no "
                                "offsets; use read(2) and write(2)",
                                descriptor));
    direct_ = (flags & O_DIRECT) != 0;
}

open_file::~open_file()
{
    engine_->leave(key_);
}

std::shared_ptr<open_file> open_file::open(std::shared_ptr<context> engine, int descriptor)
{
    std::shared_ptr<open_file> made(new open_file(std::move(engine), descriptor));
    made->key_ = made->engine_->enter(made);
    return made;
}

} // namespace weftio::storage
