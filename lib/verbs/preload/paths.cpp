#include "paths.hpp"

#include <cstring>
#include <initializer_list>

#include "../device_paths.hpp"
#include "../seam.hpp"

namespace weftio::verbs::preload {

namespace {

/// Skips slashes and "." components. Expects a slash or the end at `at`.
const char* next_component(const char* at) noexcept
{
    while (*at == '/' || (*at == '.' && at[-1] == '/' && (at[1] == '/' || at[1] == 0)))
        ++at;
    return at;
}

bool ends_component(char c) noexcept
{
    return c == '/' || c == 0;
}

/// The part of `path` after `folder`; nullptr when the path is not below it.
const char* below(const char* path, const char* folder) noexcept
{
    while (*folder != 0) {
        if (*path != '/')
            return nullptr;
        path = next_component(path);
        for (++folder; *folder != 0 && *folder != '/'; ++folder, ++path)
            if (*path != *folder)
                return nullptr;
        if (!ends_component(*path))
            return nullptr;
    }
    return path;
}

/// Whether ".." leads out of the folder that `rest` is below.
bool climbs_out(const char* rest) noexcept
{
    for (int depth = 0; *(rest = next_component(rest)) != 0;) {
        depth += rest[0] == '.' && rest[1] == '.' && ends_component(rest[2]) ? -1 : 1;
        if (depth < 0)
            return true;
        while (!ends_component(*rest))
            ++rest;
    }
    return false;
}

/// The number of a node's name, such as "uverbs0"; -1 for other names.
long node_number(const char* name) noexcept
{
    if (std::strcmp(name, connection_manager_name) == 0)
        return connection_manager_node;
    static constexpr char prefix[] = "uverbs";
    if (std::strncmp(name, prefix, sizeof prefix - 1) != 0)
        return -1;
    name += sizeof prefix - 1;
    if (*name == 0 || (name[0] == '0' && name[1] != 0))
        return -1;
    long number = 0;
    for (; *name >= '0' && *name <= '9' && number < 10'000; ++name)
        number = number * 10 + (*name - '0');
    return *name == 0 ? number : -1;
}

} // namespace

path_kind kind_of(const char* path) noexcept
{
    if (path == nullptr || path[0] != '/')
        return {};
    const char* const start = next_component(path);
    if (std::strncmp(start, "sys", 3) != 0 && std::strncmp(start, "dev", 3) != 0)
        return {};
    for (const char* folder : our_folders) {
        const char* const rest = below(path, folder);
        if (rest == nullptr || climbs_out(rest))
            continue;
        const long number = folder == node_folder && *rest != 0 ? node_number(next_component(rest)) : -1;
        if (number < 0)
            return {.is = path_kind::described, .folder = folder, .rest = rest};
        return {.is = path_kind::node, .folder = folder, .rest = rest, .device = static_cast<unsigned>(number)};
    }
    const char* const rest = below(path, pci_links);
    if (rest == nullptr || climbs_out(rest) ||
        std::strncmp(next_component(rest), pci_domain, std::strlen(pci_domain)) != 0)
        return {};
    return {.is = path_kind::described, .folder = pci_links, .rest = rest};
}

bool may_continue(const char* path) noexcept
{
    return path != nullptr && path[0] != '/' &&
           (std::strstr(path, "infiniband") != nullptr || std::strstr(path, "uverbs") != nullptr);
}

const char* digits(unsigned number, number_text& text) noexcept
{
    char* at = text + sizeof text - 1;
    *at = 0;
    do {
        *--at = static_cast<char>('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return at;
}

bool join(char* to, std::size_t bytes, const char* first, const char* second, const char* third) noexcept
{
    for (const char* part : {first, second, third}) {
        const std::size_t length = std::strlen(part);
        if (length >= bytes)
            return false;
        std::memcpy(to, part, length);
        to += length;
        bytes -= length;
    }
    *to = 0;
    return true;
}

} // namespace weftio::verbs::preload
