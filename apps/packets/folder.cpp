#include "folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>

#include "weftio/error.hpp"

namespace weftio::packets {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_file = 1u << 30; // positions of a response stream have 32 bits

error refused(errc why, const fs::path& what, std::string_view text)
{
    return {why, fmt::format("weftio-packets: --root: {}: {}", what.string(), text)};
}

error refused_by_system(const fs::path& what, int number)
{
    return refused(number == EACCES || number == EPERM ? errc::permission_denied : errc::not_found, what,
                   fmt::format("cannot read: {}; change its permissions or move it elsewhere", std::strerror(number)));
}

class lister {
 public:
    lister(const fs::path& root, std::uint64_t limit_bytes) : root_(root), limit_bytes_(limit_bytes) {}

    folder_listing list()
    {
        around_.push_back(root_);
        list_one(root_, "");
        std::ranges::sort(found_.files, {}, &folder_file::path);
        std::ranges::sort(found_.folders);
        return std::move(found_);
    }

 private:
    void list_one(const fs::path& folder, const std::string& path)
    {
        std::error_code failed;
        fs::directory_iterator each(folder, failed);
        if (failed)
            throw refused_by_system(folder, failed.value());
        for (; each != fs::directory_iterator(); each.increment(failed))
            look_at(each->path(), path + '/' + each->path().filename().string());
        if (failed)
            throw refused_by_system(folder, failed.value());
    }

    void look_at(const fs::path& entry, const std::string& path)
    {
        std::error_code failed;
        const fs::path real = fs::canonical(entry, failed);
        if (entry.filename().string().front() == '.' || failed || !is_below_root(real)) {
            ++found_.skipped;
            return;
        }
        if (std::ranges::any_of(path, [](unsigned char c) { return c < ' ' || c == 127; }))
            throw refused(errc::invalid_argument, entry, "a name with control characters has no URL; rename it");
        struct stat facts {};
        if (::stat(real.c_str(), &facts) != 0)
            throw refused_by_system(entry, errno);
        if (S_ISDIR(facts.st_mode))
            enter(real, path);
        else if (S_ISREG(facts.st_mode))
            add(real, path, facts);
        else
            ++found_.skipped;
    }

    void enter(const fs::path& real, const std::string& path)
    {
        if (std::ranges::find(around_, real) != around_.end()) {
            ++found_.skipped;
            return;
        }
        found_.folders.push_back(path);
        around_.push_back(real);
        list_one(real, path);
        around_.pop_back();
    }

    void add(const fs::path& real, const std::string& path, const struct stat& facts)
    {
        const auto bytes = static_cast<std::uint64_t>(facts.st_size);
        if (::faccessat(AT_FDCWD, real.c_str(), R_OK, AT_EACCESS) != 0)
            throw refused_by_system(real, errno);
        if (bytes >= largest_file)
            throw refused(errc::invalid_argument, real,
                          fmt::format("has {} bytes; files of 1 GiB or more are not served; move it elsewhere", bytes));
        bytes_ += bytes;
        if (bytes_ > limit_bytes_)
            throw refused(errc::invalid_argument, root_,
                          fmt::format("its files exceed {} bytes, and all are kept in memory; serve a smaller folder",
                                      limit_bytes_));
        found_.files.push_back({.path = path,
                                .file = real,
                                .bytes = bytes,
                                .modified_s = facts.st_mtim.tv_sec,
                                .modified_ns = static_cast<std::uint32_t>(facts.st_mtim.tv_nsec)});
    }

    bool is_below_root(const fs::path& real) const
    {
        return std::mismatch(root_.begin(), root_.end(), real.begin(), real.end()).first == root_.end();
    }

    fs::path root_;
    std::uint64_t limit_bytes_, bytes_ = 0;
    std::vector<fs::path> around_; ///< the folders that the current one lies in, and itself
    folder_listing found_;
};

} // namespace

folder_listing list_folder(const fs::path& root, std::uint64_t limit_bytes)
{
    std::error_code failed;
    const fs::path real = fs::canonical(root, failed);
    if (failed || !fs::is_directory(real, failed))
        throw refused(errc::not_found, root, "not a folder; name one with the files to serve");
    return lister(real, limit_bytes).list();
}

std::string_view media_type(std::string_view path)
{
    static const std::map<std::string_view, std::string_view> types{
        {"avif", "image/avif"},       {"bin", "application/octet-stream"},
        {"css", "text/css"},          {"csv", "text/csv"},
        {"gif", "image/gif"},         {"gz", "application/gzip"},
        {"htm", "text/html"},         {"html", "text/html"},
        {"ico", "image/x-icon"},      {"jpeg", "image/jpeg"},
        {"jpg", "image/jpeg"},        {"js", "text/javascript"},
        {"json", "application/json"}, {"md", "text/markdown"},
        {"mjs", "text/javascript"},   {"mp3", "audio/mpeg"},
        {"mp4", "video/mp4"},         {"pdf", "application/pdf"},
        {"png", "image/png"},         {"svg", "image/svg+xml"},
        {"tar", "application/x-tar"}, {"txt", "text/plain"},
        {"wasm", "application/wasm"}, {"wav", "audio/wav"},
        {"webm", "video/webm"},       {"webp", "image/webp"},
        {"woff", "font/woff"},        {"woff2", "font/woff2"},
        {"xml", "application/xml"},   {"zip", "application/zip"},
    };
    const std::size_t dot = path.find_last_of("./");
    if (dot == path.npos || path[dot] != '.')
        return "application/octet-stream";
    std::string extension(path.substr(dot + 1));
    std::ranges::transform(extension, extension.begin(),
                           [](char c) { return 'A' <= c && c <= 'Z' ? char(c + 32) : c; });
    const auto found = types.find(extension);
    return found == types.end() ? "application/octet-stream" : found->second;
}

std::string percent_encoded(std::string_view path)
{
    std::string encoded;
    for (const char c : path) {
        if (('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
            std::string_view("-._~!$&'()*+,;=:@/").find(c) != std::string_view::npos)
            encoded += c;
        else
            encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return encoded;
}

} // namespace weftio::packets
