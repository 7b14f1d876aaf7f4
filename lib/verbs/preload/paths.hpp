// Which paths are of devices, as text: no file is looked at.
#pragma once

#include <cstddef>

namespace weftio::verbs::preload {

/// What a path means.
struct path_kind {
    enum { other, described, node } is = other;
    const char* folder = nullptr; ///< described, node: one of our folders, such as "/dev/infiniband"
    const char* rest = nullptr;   ///< described, node: what follows the folder in the path: empty, or begins with '/'
    unsigned device = 0;          ///< node: N of /dev/infiniband/uverbsN
};

/// Recognizes absolute paths of our folders and what lies below them, also with "//" and "/./" in them. A path that
/// climbs out of our folders again by ".." is of another kind.
path_kind kind_of(const char* path) noexcept;

/// Whether a relative path could be one of ours, depending on the folder that it starts from.
bool may_continue(const char* path) noexcept;

/// Concatenates. False when `bytes` do not hold the text and its end.
bool join(char* to, std::size_t bytes, const char* first, const char* second, const char* third) noexcept;

using number_text = char[16];
/// Writes a number to the end of `text`. Returns where it begins.
const char* digits(unsigned number, number_text& text) noexcept;

} // namespace weftio::verbs::preload
