// Redirects a path of the program.
#pragma once

#include <fcntl.h>

#include <climits>

namespace weftio::verbs::preload {

/// A path to pass to the C library.
class target_path {
 public:
    /// A path that is not one of ours.
    explicit target_path(const char* path) noexcept : path_(path) {}
    target_path(const target_path&) = delete;
    target_path& operator=(const target_path&) = delete;

    /// Absolute if it differs from the program's path.
    const char* path() const noexcept { return path_; }
    bool is_node() const noexcept { return is_node_; }
    unsigned device() const noexcept { return device_; } ///< of a node
    /// Name in the folder of nodes if it is not a node's, such as "rdma_cm"; else nullptr.
    const char* neighbor() const noexcept { return neighbor_; }

 protected:
    const char* path_;
    bool is_node_ = false;
    unsigned device_ = 0;
    const char* neighbor_ = nullptr; ///< in text_
};

/// A path that may be one of ours. If it is, starts the engine.
class redirected_path : public target_path {
 public:
    /// `folder` as openat() takes it: where a relative path starts.
    redirected_path(int folder, const char* path) noexcept;

 private:
    void find(const char* path) noexcept;
    void find_from(int folder, const char* path) noexcept;

    char text_[PATH_MAX + 256]; // a longer path is passed on, and the kernel refuses it
};

/// Whether a path may be one of ours, judged by its text.
bool concerns_us(const char* path) noexcept;

template <class Use>
[[gnu::noinline]] auto with_redirected(int folder, const char* path, Use use)
{
    return use(redirected_path(folder, path));
}

/// Calls `use(target_path)`. Other paths need no space on the stack, because a signal handler may have little.
template <class Use>
auto with_target(int folder, const char* path, Use use)
{
    return concerns_us(path) ? with_redirected(folder, path, use) : use(target_path(path));
}

/// Calls `use(path)` with the redirected path.
template <class Use>
auto with_path(int folder, const char* path, Use use)
{
    return with_target(folder, path, [&](const target_path& at) { return use(at.path()); });
}
template <class Use>
auto with_path(const char* path, Use use)
{
    return with_path(AT_FDCWD, path, use);
}

/// Removes the tree's folder from the start of a path. The result is what the program would have found on a host with
/// such devices. Returns `path`.
char* without_tree(char* path) noexcept;

/// The file of a node in the tree.
class node_file {
 public:
    explicit node_file(unsigned device) noexcept;
    const char* path() const noexcept { return text_; }

 private:
    char text_[PATH_MAX + 256];
};

} // namespace weftio::verbs::preload
