// Classifies paths by their text, without accessing files.
#pragma once

#include <cstddef>

namespace weftio::verbs::preload {

/// What a path means.
struct path_kind {
    enum { other, described, node } is = other;
    const char* folder = nullptr; ///< described, node: one of our folders, such as "/dev/infiniband"
    const char* rest = nullptr;   ///< described, node: what follows the folder in the path: empty, or begins with '/'
    unsigned device = 0;          ///< node: N of /dev/infiniband/uverbsN, or connection_manager_node
};

/// Recognizes absolute paths of our folders and of anything below them, also with "//" and "/./". A path that leaves
/// our folders by ".." is `other`.
path_kind kind_of(const char* path) noexcept;

/// Whether a relative path could be one of ours, depending on its starting folder.
bool may_continue(const char* path) noexcept;

/// Concatenates three texts. Returns false when the result with its terminator exceeds `bytes`.
bool join(char* to, std::size_t bytes, const char* first, const char* second, const char* third) noexcept;

using number_text = char[16];
/// Writes a number to the end of `text`. Returns its start.
const char* digits(unsigned number, number_text& text) noexcept;

} // namespace weftio::verbs::preload
