#include "file_clash.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace weftio::replay {

namespace {

namespace fs = std::filesystem;

/// One file on the command line.
struct use {
    std::string path; ///< `-`: standard input or output
    std::string word; ///< the option that names it, for the error text
};

struct uses {
    std::vector<use> read, written;
};

/// Identifies a file: an existing one by device and inode, another by its folder's device and inode and its name.
struct identity {
    dev_t device = 0;
    ino_t inode = 0;
    std::string name{};

    bool operator==(const identity&) const = default;
};

std::optional<identity> identity_of(const struct stat& about)
{
    if (!S_ISREG(about.st_mode))
        return std::nullopt;
    return identity{.device = about.st_dev, .inode = about.st_ino};
}

std::optional<identity> identity_of_descriptor(int descriptor)
{
    struct stat about {};
    return ::fstat(descriptor, &about) == 0 ? identity_of(about) : std::nullopt;
}

/// Follows a dangling symbolic link: writing would create its target.
fs::path followed(fs::path path)
{
    constexpr int most_links = 40; // Linux's own limit
    std::error_code error;
    for (int links = 0; links < most_links && fs::is_symlink(fs::symlink_status(path, error)); ++links)
        path = path.parent_path() / fs::read_symlink(path, error);
    return path;
}

std::optional<identity> identity_of_path(const std::string& path)
{
    struct stat about {};
    if (::stat(path.c_str(), &about) == 0)
        return identity_of(about);
    const fs::path file = followed(path);
    const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
    if (::stat(folder.c_str(), &about) != 0)
        return std::nullopt;
    return identity{.device = about.st_dev, .inode = about.st_ino, .name = file.filename().string()};
}

std::optional<identity> identity_of(const use& file, int standard)
{
    return file.path == "-" ? identity_of_descriptor(standard) : identity_of_path(file.path);
}

/// Adds the capture files of a port: the values of rx and tx in the arguments of `pcap:...` and `net_pcap...`.
void add_captures(const std::string& port, uses& to)
{
    const bool devargs = port.starts_with("net_pcap");
    if (!devargs && !port.starts_with("pcap:"))
        return;
    const std::string rx = devargs ? "rx_pcap=" : "rx=", tx = devargs ? "tx_pcap=" : "tx=";
    std::string_view words = std::string_view(port).substr(devargs ? 0 : 5);
    while (!words.empty()) {
        const std::string_view word = words.substr(0, words.find(','));
        if (word.starts_with(tx))
            to.written.push_back({std::string(word.substr(tx.size())), "port " + port});
        else if (word.starts_with(rx))
            to.read.push_back({std::string(word.substr(rx.size())), "port " + port});
        else if (!devargs)
            to.read.push_back({std::string(word), "port " + port});
        words.remove_prefix(std::min(word.size() + 1, words.size()));
    }
}

uses uses_of(const command& wanted)
{
    uses all;
    for (const std::string& path : wanted.session.files)
        all.read.push_back({path, path});
    if (!wanted.json.empty())
        all.written.push_back({wanted.json, "--json " + wanted.json});
    if (wanted.what != command::action::replay)
        return all;
    if (!wanted.plot.empty())
        all.written.push_back({wanted.plot, "--plot " + wanted.plot});
    add_captures(wanted.session.port, all);
    add_captures(wanted.second_port, all);
    return all;
}

bool same(const use& written, const use& other, int standard_of_other)
{
    if (written.path == "-" && other.path == "-" && standard_of_other == STDOUT_FILENO)
        return true;
    const auto first = identity_of(written, STDOUT_FILENO);
    return first && first == identity_of(other, standard_of_other);
}

} // namespace

std::string file_clash(const command& wanted)
{
    const uses all = uses_of(wanted);
    for (std::size_t at = 0; at < all.written.size(); ++at) {
        const use& written = all.written[at];
        for (const use& read : all.read)
            if (same(written, read, STDIN_FILENO))
                return fmt::format("weftio-replay: {}: would overwrite {}; name another file", written.word,
                                   read.word == "-" ? "standard input" : read.word);
        for (std::size_t before = 0; before < at; ++before)
            if (same(written, all.written[before], STDOUT_FILENO))
                return fmt::format("weftio-replay: {}: the same file as that of {}; name two files", written.word,
                                   all.written[before].word);
    }
    return {};
}

} // namespace weftio::replay
