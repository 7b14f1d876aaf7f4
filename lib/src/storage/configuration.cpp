#include "storage/configuration.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "storage/configuration_keys.hpp"
#include "storage/json_lines.hpp"
#include "weftio/error.hpp"

namespace weftio::storage {

namespace {

constexpr std::size_t longest_file = 1 << 20;

/// Reads the file, or throws with the reason.
std::string text_of(const std::string& path)
{
    struct descriptor {
        int number;
        ~descriptor()
        {
            if (number >= 0)
                ::close(number);
        }
    } file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    std::string text(longest_file + 1, '\0');
    std::size_t length = 0;
    ssize_t got = file.number < 0 ? -1 : 1;
    while (got > 0 && length < text.size()) {
        got = ::read(file.number, text.data() + length, text.size() - length);
        length += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    if (got < 0) {
        const int why = errno;
        throw error(why == ENOENT   ? errc::not_found
                    : why == EACCES ? errc::permission_denied
                                    : errc::invalid_argument,
                    fmt::format("weftio: {}: cannot read the configuration: {}; set WEFTIO_FILE_JSON or "
                                "CUFILE_ENV_PATH_JSON to another file, or unset them",
                                path, std::strerror(why)));
    }
    if (length > longest_file)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: longer than {} bytes, not a configuration", path, longest_file));
    text.resize(length);
    return text;
}

} // namespace

std::string_view to_string(routing_policy policy) noexcept
{
    switch (policy) {
        case routing_policy::gpu_mem_nvlinks: return "GPU_MEM_NVLINKS";
        case routing_policy::gpu_mem: return "GPU_MEM";
        case routing_policy::sys_mem: return "SYS_MEM";
        case routing_policy::p2p: return "P2P";
    }
    return "unknown";
}

std::string_view to_string(logging_level level) noexcept
{
    switch (level) {
        case logging_level::error: return "ERROR";
        case logging_level::warn: return "WARN";
        case logging_level::info: return "INFO";
        case logging_level::debug: return "DEBUG";
        case logging_level::trace: return "TRACE";
    }
    return "unknown";
}

namespace {

/// The section of a file system: that of its name, else that of the vendor's name for it.
auto section_of(const std::map<std::string, file_system_settings>& all, std::string_view file_system)
{
    const auto found = all.find(std::string(file_system));
    if (found != all.end())
        return found;
    return all.find(file_system == "nfs4" ? "nfs" : file_system == "wekafs" ? "weka" : std::string());
}

bool has(const std::vector<std::string>& list, std::string_view name)
{
    return std::find(list.begin(), list.end(), name) != list.end();
}

} // namespace

bool configuration::denies(std::string_view file_system, std::string_view mount) const
{
    return has(denied_mounts, mount) || has(denied_file_systems, file_system);
}

bool configuration::names_mounts() const noexcept
{
    return !denied_mounts.empty() || !denied_file_systems.empty() ||
           std::any_of(file_systems.begin(), file_systems.end(),
                       [](const auto& each) { return each.second.posix_gds_min_bytes != 0; });
}

const std::vector<std::string>& configuration::addresses_of(std::string_view file_system, std::string_view mount) const
{
    const auto settings = section_of(file_systems, file_system);
    if (settings == file_systems.end())
        return rdma_addresses;
    const auto own = settings->second.mounts.find(std::string(mount));
    if (own != settings->second.mounts.end() && !own->second.empty())
        return own->second;
    return settings->second.rdma_addresses.empty() ? rdma_addresses : settings->second.rdma_addresses;
}

std::uint64_t configuration::posix_at_most(std::string_view file_system) const
{
    auto settings = section_of(file_systems, file_system);
    if (settings == file_systems.end())
        settings = file_systems.find("generic");
    return settings == file_systems.end() ? 0 : settings->second.posix_gds_min_bytes;
}

std::string configuration_path(std::string_view option)
{
    if (!option.empty())
        return std::string(option);
    for (const char* variable : {"WEFTIO_FILE_JSON", "CUFILE_ENV_PATH_JSON"})
        if (const char* value = std::getenv(variable); value && *value)
            return value;
    return {};
}

configuration read_configuration(const std::string& path)
{
    return path.empty() ? configuration{} : parse_configuration(text_of(path), path);
}

configuration parse_configuration(std::string_view text, std::string_view name)
{
    configuration made;
    made.path = name;
    configuration_keys keys(made, name);
    keys.apply(parse_json(text, name));
    return made;
}

} // namespace weftio::storage
