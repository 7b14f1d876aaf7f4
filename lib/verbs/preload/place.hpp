// Where a path of the program leads.
#pragma once

#include <climits>

namespace weftio::verbs::preload {

/// A path as the C library gets it. Starts the engine when it is one of ours.
class place {
 public:
    /// `folder` as openat() takes it: where a relative path starts.
    place(int folder, const char* path) noexcept;
    explicit place(const char* path) noexcept;
    place(const place&) = delete;
    place& operator=(const place&) = delete;

    /// Absolute when it differs from what the program said.
    const char* path() const noexcept { return path_; }
    bool is_node() const noexcept { return is_node_; }
    unsigned device() const noexcept { return device_; } ///< of a node

 private:
    void find(const char* path) noexcept;
    void find_from(int folder, const char* path) noexcept;

    const char* path_;
    bool is_node_ = false;
    unsigned device_ = 0;
    char text_[PATH_MAX + 256]; // a path that is too long is the kernel's to refuse
};

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
