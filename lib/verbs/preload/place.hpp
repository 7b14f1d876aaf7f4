// Where a path of the program leads.
#pragma once

#include <fcntl.h>

#include <climits>

namespace weftio::verbs::preload {

/// A path as the C library gets it.
class place {
 public:
    /// A path that is none of ours.
    explicit place(const char* path) noexcept : path_(path) {}
    place(const place&) = delete;
    place& operator=(const place&) = delete;

    /// Absolute when it differs from what the program said.
    const char* path() const noexcept { return path_; }
    bool is_node() const noexcept { return is_node_; }
    unsigned device() const noexcept { return device_; } ///< of a node

 protected:
    const char* path_;
    bool is_node_ = false;
    unsigned device_ = 0;
};

/// A path that may be ours. Starts the engine when it is.
class found_place : public place {
 public:
    /// `folder` as openat() takes it: where a relative path starts.
    found_place(int folder, const char* path) noexcept;

 private:
    void find(const char* path) noexcept;
    void find_from(int folder, const char* path) noexcept;

    char text_[PATH_MAX + 256]; // a path that is too long is the kernel's to refuse
};

/// Whether a path may be ours, by its text.
bool concerns_us(const char* path) noexcept;

template <class Use>
[[gnu::noinline]] auto with_found_place(int folder, const char* path, Use use)
{
    return use(found_place(folder, path));
}

/// Calls `use(place)`. Paths that are none of ours take no room on the stack: handlers of signals may have little.
template <class Use>
auto with_place(int folder, const char* path, Use use)
{
    return concerns_us(path) ? with_found_place(folder, path, use) : use(place(path));
}

/// Calls `use(path)` likewise.
template <class Use>
auto with_path(int folder, const char* path, Use use)
{
    return with_place(folder, path, [&](const place& at) { return use(at.path()); });
}
template <class Use>
auto with_path(const char* path, Use use)
{
    return with_path(AT_FDCWD, path, use);
}

/// Removes the tree's folder in front of a path; what remains is what the program would have found on a host that has
/// the devices. Returns `path`.
char* without_tree(char* path) noexcept;

/// The tree's file of a node.
class node_file {
 public:
    explicit node_file(unsigned device) noexcept;
    const char* path() const noexcept { return text_; }

 private:
    char text_[PATH_MAX + 256];
};

} // namespace weftio::verbs::preload
