// A temporary file of a test, and bytes to write to it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace weftio::test {

/// An empty file in `folder`. The destructor removes it.
class scratch_file {
 public:
    explicit scratch_file(int flags = 0, const char* folder = "/tmp")
        : path_(std::string(folder) + "/weftio-file-XXXXXX")
    {
        const int made = mkstemp(path_.data());
        descriptor_ = open(path_.c_str(), O_RDWR | O_CLOEXEC | flags);
        if (made >= 0)
            close(made);
        if (descriptor_ < 0)
            throw std::runtime_error("cannot open " + path_);
    }
    scratch_file(const scratch_file&) = delete;
    scratch_file& operator=(const scratch_file&) = delete;
    ~scratch_file()
    {
        close(descriptor_);
        unlink(path_.c_str());
    }
    int descriptor() const noexcept { return descriptor_; }
    const std::string& path() const noexcept { return path_; }

 private:
    std::string path_;
    int descriptor_ = -1;
};

/// Bytes that depend on their offset and on the seed.
inline std::vector<std::byte> pattern(std::size_t bytes, std::size_t seed)
{
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        made[i] = static_cast<std::byte>((i * 2654435761U >> 13) + i + seed * 101);
    return made;
}

} // namespace weftio::test
