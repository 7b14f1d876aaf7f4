#include "target_path.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "../device_paths.hpp"
#include "../seam.hpp"
#include "counters.hpp"
#include "host.hpp"
#include "paths.hpp"
#include "real.hpp"

namespace weftio::verbs::preload {

namespace {

/// The path of the folder of a descriptor. Returns false when it is not a folder.
bool name_of_folder(int folder, char* to, std::size_t bytes) noexcept
{
    number_text number;
    char link[64];
    if (folder != AT_FDCWD && folder < 0)
        return false;
    if (folder == AT_FDCWD)
        join(link, sizeof link, "/proc/self/cwd", "", "");
    else
        join(link, sizeof link, "/proc/self/fd/", digits(static_cast<unsigned>(folder), number), "");
    const ssize_t length = real().readlink(link, to, bytes - 1);
    if (length > 0)
        to[length] = 0;
    return length > 0;
}

} // namespace

bool concerns_us(const char* path) noexcept
{
    return kind_of(path).is != path_kind::other || may_continue(path);
}

redirected_path::redirected_path(int folder, const char* path) noexcept : target_path(path)
{
    if (path[0] == '/')
        find(path);
    else
        find_from(folder, path);
}

void redirected_path::find_from(int folder, const char* path) noexcept
{
    const int error = errno;
    char from[PATH_MAX], whole[2 * PATH_MAX];
    if (name_of_folder(folder, from, sizeof from) && join(whole, sizeof whole, without_tree(from), "/", path))
        find(whole);
    errno = error;
}

void redirected_path::find(const char* path) noexcept
{
    const path_kind kind = kind_of(path);
    const char* const prefix = kind.is == path_kind::other ? nullptr : tree();
    if (prefix == nullptr)
        return;
    is_node_ = kind.is == path_kind::node &&
               (kind.device < devices() || (kind.device == connection_manager_node && devices() != 0));
    device_ = kind.device;
    if (!join(text_, sizeof text_, prefix, kind.folder, kind.rest)) {
        std::memset(text_, 'x', sizeof text_ - 1); // as long and as invalid as the program's path
        text_[sizeof text_ - 1] = 0;
    }
    path_ = text_;
    if (kind.is == path_kind::described && std::strstr(kind.rest, "counters") != nullptr)
        refresh_counters();
    if (kind.is == path_kind::described && kind.folder == node_folder && kind.rest[0] == '/')
        neighbor_ = std::strrchr(text_, '/') + 1;
}

char* without_tree(char* path) noexcept
{
    if (passes())
        return path;
    for (const char* const prefix : {tree_so_far(), tree_of_parent()}) {
        const std::size_t length = prefix == nullptr ? 0 : std::strlen(prefix);
        if (length != 0 && std::strncmp(path, prefix, length) == 0 && path[length] == '/') {
            std::memmove(path, path + length, std::strlen(path + length) + 1);
            break;
        }
    }
    return path;
}

node_file::node_file(unsigned device) noexcept
{
    number_text number;
    const char* const prefix = tree_so_far();
    char node[64];
    if (device == connection_manager_node)
        join(node, sizeof node, node_folder, "/", connection_manager_name);
    else
        join(node, sizeof node, node_folder, "/uverbs", digits(device, number));
    if (prefix == nullptr || !join(text_, sizeof text_, prefix, node, ""))
        text_[0] = 0;
}

} // namespace weftio::verbs::preload
