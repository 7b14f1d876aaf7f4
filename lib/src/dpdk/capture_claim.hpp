// Which capture files the ports of this process read and write.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

namespace weftio::dpdk {

/// A capture in use: any number of ports read it, or one writes it. Files are compared by device and inode, so the path
/// does not matter. Pipes and devices are not recorded.
class capture_claim {
 public:
    enum class use { read, write };

    capture_claim() = default;
    capture_claim(const capture_claim&) = delete;
    capture_claim& operator=(const capture_claim&) = delete;
    ~capture_claim() { release(); }

    /// Throws weftio::error errc::in_use. @param spec  of the port, for the error text
    void take(std::string_view spec, const std::string& path, const struct stat& file, use wanted);
    void release() noexcept;

 private:
    bool taken_ = false;
    dev_t device_ = 0;
    ino_t inode_ = 0;
    use use_ = use::read;
};

} // namespace weftio::dpdk
