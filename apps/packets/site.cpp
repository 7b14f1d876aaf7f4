#include "site.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "folder.hpp"
#include "pages.hpp"
#include "weftio/error.hpp"

namespace weftio::packets {

namespace {

constexpr std::size_t number_digits = 20; ///< of the largest value of a counter

struct fixed_answer {
    std::uint32_t status;
    std::string_view fields; ///< further ones
};

/// By enum http_fixed, from HTTP_BAD_REQUEST on, without HTTP_STATS.
constexpr fixed_answer fixed_answers[] = {
    {400, ""}, {404, ""}, {405, "Allow: GET, HEAD\r\n"}, {408, ""}, {413, ""}, {414, ""},
    {431, ""}, {501, ""}, {503, "Retry-After: 1\r\n"},   {505, ""}};
static_assert(std::size(fixed_answers) + 1 == HTTP_STATS);

std::string_view reason(std::uint32_t status)
{
    switch (status) {
        case 200: return "OK";
        case 301: return "Moved Permanently";
        case 304: return "Not Modified";
        case 400: return "Bad Request";
        case 404: return "Not Found";
        case 405: return "Method Not Allowed";
        case 408: return "Request Timeout";
        case 413: return "Content Too Large";
        case 414: return "URI Too Long";
        case 431: return "Request Header Fields Too Large";
        case 501: return "Not Implemented";
        case 503: return "Service Unavailable";
        default: return "HTTP Version Not Supported";
    }
}

/// FNV-1a of 64 bits; never 0.
std::uint64_t tag_of(std::string_view text)
{
    std::uint64_t hash = 14695981039346656037ull;
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    return hash == 0 ? 1 : hash;
}

std::uint32_t hash_of(std::string_view path)
{
    std::uint32_t hash = HTTP_HASH_BEGIN;
    for (const char c : path)
        hash = http_hash(hash, static_cast<unsigned char>(c));
    return hash;
}

std::string http_time(std::int64_t seconds)
{
    static constexpr std::string_view days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr std::string_view months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const std::tm at = fmt::gmtime(static_cast<std::time_t>(seconds));
    return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", days[at.tm_wday], at.tm_mday, months[at.tm_mon],
                       at.tm_year + 1900, at.tm_hour, at.tm_min, at.tm_sec);
}

std::string head(std::uint32_t status, unsigned which, std::string_view fields)
{
    return fmt::format("HTTP/1.1 {} {}\r\nServer: weftio\r\nConnection: {}\r\n{}", status, reason(status),
                       which & HTTP_CLOSING ? "close" : "keep-alive", fields);
}

/// The file as it is now, which must have `bytes` bytes.
void read_file(const std::filesystem::path& from, std::byte* to, std::size_t bytes)
{
    const auto refused = [&](errc why, std::string_view text) {
        return error(why, fmt::format("weftio-packets: --root: {}: {}", from.string(), text));
    };
    const int file = ::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        throw refused(errno == EACCES ? errc::permission_denied : errc::not_found,
                      fmt::format("cannot read: {}; start again", std::strerror(errno)));
    struct stat facts {};
    bool same = ::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == static_cast<off_t>(bytes);
    for (std::size_t done = 0; same && done < bytes;) {
        const ssize_t count = ::read(file, to + done, bytes - done);
        same = count > 0 || (count < 0 && errno == EINTR);
        done += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
    ::close(file);
    if (!same)
        throw refused(errc::in_use,
                      fmt::format("no longer has its {} bytes; start again when no program writes it", bytes));
}

void put(std::span<std::byte> to, std::uint64_t offset, std::string_view text)
{
    std::memcpy(to.data() + offset, text.data(), text.size());
}

template <class Record>
void put_records(std::span<std::byte> to, std::uint64_t offset, const std::vector<Record>& records)
{
    std::memcpy(to.data() + offset, records.data(), records.size() * sizeof(Record));
}

} // namespace

site::site(site_options options) : options_(std::move(options))
{
    add_fixed();
    if (!options_.root.empty())
        add_files();
    if (!paths_.contains("/"))
        add_page("/", front_page());
    if (!paths_.contains("/contact"))
        add_page("/contact", contact_page());
    add_counters();
    lay_out();
}

/// An item with the heads that go with a body of known length.
site::entry& site::add(std::uint32_t status, std::string path, std::string_view type, std::string_view fields,
                       std::uint64_t body_bytes)
{
    entry& made = entries_.emplace_back();
    made.item.status = status;
    made.item.body_bytes = static_cast<std::uint32_t>(body_bytes);
    made.path = std::move(path);
    paths_.insert(made.path);
    for (unsigned which = 0; which < HTTP_NOT_MODIFIED; ++which)
        made.heads[which] = head(
            status, which, fmt::format("{}Content-Type: {}\r\nContent-Length: {}\r\n\r\n", fields, type, body_bytes));
    return made;
}

void site::add_fixed()
{
    entries_.emplace_back();
    for (const fixed_answer& each : fixed_answers) {
        std::string body = fmt::format("{} {}\n", each.status, reason(each.status));
        add(each.status, "", "text/plain", each.fields, body.size()).body = std::move(body);
    }
    entry& stats = entries_.emplace_back();
    stats.item.status = 200;
    stats.path = "/stats";
    for (unsigned which = 0; which < HTTP_NOT_MODIFIED; ++which)
        stats.heads[which] =
            head(200, which, "Content-Type: application/json\r\nCache-Control: no-store\r\nContent-Length: ");
}

void site::add_page(std::string path, std::string body)
{
    const std::uint64_t etag = tag_of(body);
    const std::string fields = fmt::format("ETag: \"{:016x}\"\r\n", etag);
    entry& made = add(200, std::move(path), "text/html; charset=utf-8", fields, body.size());
    made.item.etag = etag;
    made.body = std::move(body);
    for (unsigned which = HTTP_NOT_MODIFIED; which < HTTP_HEADS; ++which)
        made.heads[which] = head(304, which, fields + "\r\n");
}

void site::add_files()
{
    const folder_listing found = list_folder(options_.root, options_.root_limit);
    skipped_ = found.skipped;
    for (const folder_file& each : found.files) {
        if (each.path == "/stats")
            throw error(
                errc::invalid_argument,
                fmt::format(
                    "weftio-packets: --root: {}: /stats is reserved for the counters; give the file another name",
                    each.file.string()));
        const std::uint64_t etag =
            tag_of(fmt::format("{}\n{}\n{}.{}", each.path, each.bytes, each.modified_s, each.modified_ns));
        const std::string fields =
            fmt::format("ETag: \"{:016x}\"\r\nLast-Modified: {}\r\n", etag, http_time(each.modified_s));
        const bool index = each.path.ends_with("/index.html");
        for (std::size_t cut = 0; cut <= (index ? std::size_t{10} : 0); cut += 10) {
            entry& made =
                add(200, each.path.substr(0, each.path.size() - cut), media_type(each.path), fields, each.bytes);
            made.item.etag = etag;
            made.file = each.file;
            for (unsigned which = HTTP_NOT_MODIFIED; which < HTTP_HEADS; ++which)
                made.heads[which] = head(304, which, fields + "\r\n");
        }
        ++files_;
        file_bytes_ += each.bytes;
    }
    for (const std::string& each : found.folders)
        if (paths_.contains(each + '/'))
            add(301, each, "text/plain", fmt::format("Location: {}/\r\n", percent_encoded(each)), 0);
}

void site::add_counters()
{
    texts_ = stats_texts(options_);
    header_.counter_count = static_cast<std::uint32_t>(options_.counters.size());
    for (const std::string& text : texts_) {
        const std::size_t at = counters_.size();
        counters_.push_back(
            {.text = 0,
             .text_bytes = static_cast<std::uint32_t>(text.size()),
             .kind = at < options_.counters.size() ? static_cast<std::uint32_t>(options_.counters[at].kind) : 0u});
        header_.stats_bytes += static_cast<std::uint32_t>(text.size() + (at > 0 ? number_digits : 0));
    }
}

/// Open addressing, at most half full.
void site::lay_out_table()
{
    slots_.assign(std::bit_ceil(2 * entries_.size()), 0);
    header_.slot_mask = static_cast<std::uint32_t>(slots_.size() - 1);
    for (std::uint32_t number = 1; number < entries_.size(); ++number) {
        entry& each = entries_[number];
        if (each.path.empty())
            continue;
        each.item.path_bytes = static_cast<std::uint32_t>(each.path.size());
        each.item.path_hash = hash_of(each.path);
        std::uint32_t probe = 0;
        while (slots_[(each.item.path_hash + probe) & header_.slot_mask] != 0)
            ++probe;
        slots_[(each.item.path_hash + probe) & header_.slot_mask] = number;
        header_.longest_probe = std::max(header_.longest_probe, probe + 1);
    }
}

void site::lay_out()
{
    lay_out_table();
    std::uint64_t end = (sizeof(http_site) + 63) / 64 * 64;
    const auto claim = [&](std::uint64_t count) { return std::exchange(end, end + count); };
    header_.magic = HTTP_SITE_MAGIC;
    header_.item_count = static_cast<std::uint32_t>(entries_.size());
    header_.items = claim(entries_.size() * sizeof(http_item));
    header_.counters = claim(counters_.size() * sizeof(http_counter));
    header_.slots = claim(slots_.size() * sizeof(std::uint32_t));
    for (http_counter& each : counters_)
        each.text = claim(each.text_bytes);
    for (entry& each : entries_)
        each.item.path = claim(each.path.size());
    for (entry& each : entries_) { // the head that is sent most lies in front of its body
        for (unsigned which = HTTP_HEADS; which-- > 0;) {
            each.item.head_bytes[which] = static_cast<std::uint32_t>(each.heads[which].size());
            each.item.heads[which] = claim(each.heads[which].size());
        }
        each.item.body = claim(each.item.body_bytes);
    }
    header_.bytes = end;
}

void site::write(std::span<std::byte> to) const
{
    std::vector<http_item> items;
    for (const entry& each : entries_)
        items.push_back(each.item);
    std::memcpy(to.data(), &header_, sizeof header_);
    put_records(to, header_.items, items);
    put_records(to, header_.counters, counters_);
    put_records(to, header_.slots, slots_);
    for (std::size_t at = 0; at < texts_.size(); ++at)
        put(to, counters_[at].text, texts_[at]);
    for (const entry& each : entries_) {
        put(to, each.item.path, each.path);
        for (unsigned which = 0; which < HTTP_HEADS; ++which)
            put(to, each.item.heads[which], each.heads[which]);
        if (each.file.empty())
            put(to, each.item.body, each.body);
        else
            read_file(each.file, to.data() + each.item.body, each.item.body_bytes);
    }
}

} // namespace weftio::packets
