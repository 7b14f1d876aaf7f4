// A web site, the data that the sessions of a block share, and a peer that reads their responses. Every allocation has
// exactly the required size, so that AddressSanitizer detects any access beyond it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "kernel/http/session.h"
#include "site.hpp"

namespace weftio::packets {

/// A temporary folder. The destructor removes it.
class http_folder {
 public:
    http_folder()
    {
        std::string name = (std::filesystem::temp_directory_path() / "weftio-http-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr)
            throw std::runtime_error("no folder in /tmp");
        path_ = name;
    }
    ~http_folder()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    http_folder(const http_folder&) = delete;
    http_folder& operator=(const http_folder&) = delete;

    const std::filesystem::path& path() const { return path_; }
    http_folder& file(const std::string& name, std::string_view text)
    {
        std::filesystem::create_directories((path_ / name).parent_path());
        std::ofstream(path_ / name, std::ios::binary) << text;
        return *this;
    }

 private:
    std::filesystem::path path_;
};

/// An allocation of exactly the given size.
class http_exact {
 public:
    explicit http_exact(std::string_view text) : bytes_(new weftio_u8[text.size()])
    {
        text.copy(reinterpret_cast<char*>(bytes_.get()), text.size());
    }
    const weftio_u8* data() const { return bytes_.get(); }

 private:
    std::unique_ptr<weftio_u8[]> bytes_;
};

struct http_world_options {
    std::uint32_t head_bytes = 4096, target_bytes = 2048, body_bytes = 1000;
    std::uint64_t request_ns = 1000;
    std::uint32_t buffers = 2, snapshots = 2, blocks = 1;
};

class http_world {
 public:
    explicit http_world(site_options options = {}, http_world_options sizes = {})
        : values(options.counters.size() * sizes.blocks), image_(make_image(options)), path_(sizes.target_bytes),
          buffers_(std::size_t{sizes.buffers} * sizes.head_bytes)
    {
        worker.site = reinterpret_cast<const http_site*>(image_.data());
        worker.limits = {sizes.request_ns, sizes.head_bytes, sizes.target_bytes, sizes.body_bytes, 0};
        worker.values = {values.data(), sizes.blocks, static_cast<std::uint32_t>(options.counters.size())};
        const std::uint32_t stride = http_snapshot_bytes(worker.site);
        snapshots_.resize(std::size_t{stride} * sizes.snapshots);
        worker.snapshots = {snapshots_.data(), stride, sizes.snapshots, 0, 0};
        worker.path = path_.data();
        worker.buffers = buffers_.data();
        for (std::uint32_t each = 0; each < sizes.buffers; ++each)
            free_.push_back(each);
        worker.free_buffers = free_.data();
        worker.buffer_count = worker.free_count = sizes.buffers;
    }

    http_worker worker{};
    std::vector<weftio_u64> values;

 private:
    static std::vector<std::byte> make_image(const site_options& options)
    {
        const site made(options);
        std::vector<std::byte> image(made.bytes());
        made.write(image);
        return image;
    }

    std::vector<std::byte> image_;
    std::vector<weftio_u8> path_, buffers_, snapshots_;
    std::vector<weftio_u32> free_;
};

/// A connection to a world.
class http_peer {
 public:
    explicit http_peer(http_world& world) : world_(world) { http_begin(&session); }
    ~http_peer() { http_drop(&world_.worker, &session); }
    http_peer(const http_peer&) = delete;
    http_peer& operator=(const http_peer&) = delete;

    /// Sends bytes as one segment. @return the number of bytes accepted
    std::size_t send(std::string_view text)
    {
        const http_exact bytes(text);
        http_result result;
        http_take(&world_.worker, &session, bytes.data(), static_cast<weftio_u32>(text.size()), now, &result);
        note(result);
        return result.taken;
    }
    void end()
    {
        http_result result;
        http_end(&world_.worker, &session, now, &result);
        note(result);
    }
    void expire()
    {
        http_result result;
        http_expire(&world_.worker, &session, now, &result);
        note(result);
    }
    /// Bytes of the stream that are ready, from a position on.
    std::string peek(std::uint32_t from, std::uint32_t count) const
    {
        std::vector<weftio_u8> to(count);
        to.resize(http_copy(&world_.worker, &session, from, count, to.data()));
        return {to.begin(), to.end()};
    }
    std::string peek() const { return peek(acknowledged, ready - acknowledged); }
    void acknowledge(std::uint32_t position)
    {
        http_result result;
        acknowledged = position;
        http_acknowledged(&world_.worker, &session, position, now, &result);
        note(result);
    }
    /// Reads and acknowledges until no more bytes arrive.
    std::string receive()
    {
        std::string all;
        while (acknowledged != ready) {
            all += peek();
            acknowledge(ready);
        }
        return all;
    }
    std::string ask(std::string_view text)
    {
        send(text);
        return receive();
    }

    http_session session;
    weftio_u64 now = 1;
    std::uint32_t ready = 0, acknowledged = 0, answered = 0, refused = 0, closed = 0;

 private:
    void note(const http_result& result)
    {
        ready += result.ready;
        answered += result.answered;
        refused += result.refused;
        closed += result.close;
    }

    http_world& world_;
};

/// Parses one response and removes it from the start of `text`.
struct http_reply {
    int status = 0;
    std::string head, body;
};

inline http_reply take_reply(std::string& text, bool head_only = false)
{
    http_reply reply;
    const std::size_t end = text.find("\r\n\r\n");
    if (end == text.npos || text.size() < 12 || !text.starts_with("HTTP/1.1 "))
        return reply;
    reply.status = std::stoi(text.substr(9, 3));
    reply.head = text.substr(0, end + 4);
    const std::size_t at = reply.head.find("Content-Length: ");
    const std::size_t bytes =
        at == reply.head.npos || head_only || reply.status == 304 ? 0 : std::stoul(reply.head.substr(at + 16));
    reply.body = text.substr(end + 4, bytes);
    text.erase(0, end + 4 + bytes);
    return reply;
}

} // namespace weftio::packets
