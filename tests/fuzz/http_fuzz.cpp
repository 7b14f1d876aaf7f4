// Any bytes as what a peer sends to the HTTP server of weftio-packets.
//
// Segments lie against a guard page. The same bytes get the same responses, whether they come in one segment or in
// many, and whenever the peer acknowledges them. Then two connections share the last buffer, and time passes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "expect.hpp"
#include "frame_memory.hpp"
#include "kernel/http/session.h"
#include "raw_entry.hpp"
#include "site.hpp"

namespace weftio::fuzz {

namespace {

using bytes = std::span<const std::uint8_t>;

/// What sessions share, each part in memory of its own.
class server {
 public:
    server(std::uint32_t head_bytes, std::uint32_t buffers)
        : path_(head_bytes / 2), buffers_(std::size_t{head_bytes} * buffers), free_(buffers)
    {
        const packets::site made({.root = {}, .counters = {{"a"}, {"b.c", HTTP_LARGEST}}, .facts = {}});
        image_.resize(made.bytes());
        made.write(image_);
        worker.site = reinterpret_cast<const http_site*>(image_.data());
        worker.limits = {100, head_bytes, head_bytes / 2, 40, 0};
        worker.values = {values_, 2, 2};
        const std::uint32_t stride = http_snapshot_bytes(worker.site);
        snapshots_.resize(2 * stride);
        worker.snapshots = {snapshots_.data(), stride, 2, 0, 0};
        worker.path = path_.data();
        worker.buffers = buffers_.data();
        for (std::uint32_t each = 0; each < buffers; ++each)
            free_[each] = each;
        worker.free_buffers = free_.data();
        worker.buffer_count = worker.free_count = buffers;
    }

    void expect_at_rest() const
    {
        expect(worker.free_count == worker.buffer_count, "every buffer comes back");
        for (std::uint32_t each = 0; each < 2; ++each)
            expect(http_snapshot_at(&worker.snapshots, each)->users == 0, "every snapshot comes back");
    }

    http_worker worker{};

 private:
    static constexpr weftio_u64 values_[4] = {1, ~0ull, 22, 333};

    std::vector<std::byte> image_;
    std::vector<std::uint8_t> path_, buffers_, snapshots_;
    std::vector<weftio_u32> free_;
};

class connection {
 public:
    explicit connection(server& at) : worker_(at.worker) { http_begin(&session_); }
    ~connection() { http_drop(&worker_, &session_); }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;

    std::uint32_t send(bytes segment)
    {
        static frame_memory behind;
        const bytes at = behind.against_the_end(segment);
        const std::uint32_t room = http_room(&worker_, &session_);
        http_result result;
        http_take(&worker_, &session_, at.data(), static_cast<weftio_u32>(at.size()), now, &result);
        note(result);
        expect(result.taken <= at.size(), "no more is taken than there is");
        expect(result.taken >= std::min<std::size_t>(room, at.size()), "what there is room for is taken");
        return result.taken;
    }
    void acknowledge(std::uint32_t count)
    {
        const std::size_t known = stream.size();
        stream.resize(ready_);
        const std::uint32_t from = static_cast<std::uint32_t>(known);
        expect(http_copy(&worker_, &session_, from, ready_ - from, stream.data() + known) == ready_ - from,
               "what is ready can be read");
        acknowledged_ += std::min(count, ready_ - acknowledged_);
        http_result result;
        http_acknowledged(&worker_, &session_, acknowledged_, now, &result);
        note(result);
    }
    void acknowledge_all()
    {
        while (acknowledged_ != ready_)
            acknowledge(~0u);
    }
    void end()
    {
        http_result result;
        http_end(&worker_, &session_, now, &result);
        note(result);
        acknowledge_all();
        expect(closed == 1, "a peer that ends is closed, once");
    }
    void expire()
    {
        const weftio_u64 deadline = http_deadline(&worker_, &session_);
        http_result result;
        http_expire(&worker_, &session_, now, &result);
        note(result);
        expect((result.close != 0) == (deadline != 0 && deadline <= now), "a deadline closes when it has come");
    }

    std::vector<std::uint8_t> stream;
    std::uint32_t closed = 0, answered = 0;
    weftio_u64 now = 1;

 private:
    void note(const http_result& result)
    {
        expect(result.refused <= result.answered && (result.answered == 0) == (result.ready == 0),
               "answers have bytes");
        ready_ += result.ready;
        closed += result.close;
        answered += result.answered;
        expect(closed <= 1, "a connection closes once");
    }

    http_worker& worker_;
    http_session session_;
    std::uint32_t ready_ = 0, acknowledged_ = 0;
};

/// A decoded path has no segment that leads anywhere.
void check_path(bytes head, const http_range& path)
{
    std::vector<std::uint8_t> scratch(256);
    http_path decoded{scratch.data(), static_cast<weftio_u32>(scratch.size()), 0, 0};
    if (path.begin == path.end || http_decode_path(head.data(), path, &decoded) != HTTP_FOUND)
        return;
    const std::string text(scratch.begin(), scratch.begin() + decoded.end);
    expect(decoded.end <= scratch.size() && text.front() == '/', "a path begins at the root");
    const std::string closed = text + '/';
    expect(closed.find("/../") == closed.npos && closed.find("/./") == closed.npos, "a path has no dot segments");
    expect(closed.find('\0') == closed.npos, "a path has no NUL");
}

void check_head(const server& at, bytes all)
{
    http_scan scan{};
    http_request request;
    const weftio_u32 found = http_scan_head(all.data(), static_cast<weftio_u32>(all.size()), &at.worker.limits, &scan);
    expect(scan.bytes <= all.size() && scan.bytes <= at.worker.limits.head_bytes, "a head is in bounds");
    expect((found == HTTP_SCAN_MORE) <= (scan.bytes == all.size()), "more is wanted when nothing is left");
    if (found == HTTP_SCAN_MORE)
        return;
    http_parse(all.data(), &scan, found, &at.worker.limits, &request);
    expect(request.answer < HTTP_STATS && request.answer != HTTP_UNAVAILABLE, "an answer is one of those known");
    expect(found == HTTP_SCAN_HEAD || (request.answer != HTTP_FOUND && request.close != 0), "what is wrong is refused");
    expect(request.close != 0 || request.body_bytes <= at.worker.limits.body_bytes, "a body is no longer than allowed");
    expect(request.path.begin <= request.path.end && request.path.end <= scan.bytes, "a path lies in the head");
    expect(request.none_match.begin <= request.none_match.end && request.none_match.end <= scan.bytes,
           "a value lies in the head");
    if (request.answer == HTTP_FOUND)
        check_path(all.first(scan.bytes), request.path);
}

/// Sends everything. Segments and acknowledgments are as long as `in` says; without, as long as they can be.
void send_all(connection& peer, bytes all, numbers in)
{
    while (!all.empty()) {
        const std::size_t wanted = in.empty() ? all.size() : 1 + in.byte() % 64;
        const std::uint32_t taken = peer.send(all.first(std::min(all.size(), wanted)));
        all = all.subspan(taken);
        if (taken == 0 || in.empty())
            peer.acknowledge_all();
        else if (const std::uint8_t count = in.byte(); count & 1)
            peer.acknowledge(count * 8u);
    }
    peer.end();
}

void check_alike(server& at, bytes all, numbers in)
{
    connection whole(at), cut(at);
    send_all(whole, all, {nullptr, 0});
    send_all(cut, all, in);
    expect(whole.stream == cut.stream && whole.answered == cut.answered, "segments make no difference");
}

/// Two connections send parts of the same bytes, and one buffer is all there is.
void check_shared(server& at, bytes all, numbers in)
{
    {
        connection peers[2]{connection(at), connection(at)};
        bytes left[2] = {all, all};
        for (int step = 0; step < 64; ++step) {
            const std::uint8_t what = in.byte();
            connection& peer = peers[what & 1];
            bytes& rest = left[what & 1];
            peer.now = peers[~what & 1].now += what & 2 ? 60 : what & 4 ? 2'000'000'000 : 1;
            rest = rest.subspan(peer.send(rest.first(std::min<std::size_t>(rest.size(), what >> 3))));
            if (what & 8)
                peer.acknowledge(in.byte());
            if (what & 16)
                peer.expire();
        }
        peers[1].end();
    }
    at.expect_at_rest();
}

void look_at(bytes all, numbers in)
{
    static server small(128, 2), large(1000, 3), narrow(128, 1);
    server& at = in.byte() & 1 ? small : large;
    check_head(at, all);
    check_alike(at, all, in);
    at.expect_at_rest();
    check_shared(narrow, all, in);
}

} // namespace

} // namespace weftio::fuzz

/// What a peer sends, and behind it sixteen bytes that say how.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    constexpr std::size_t choices = 16;
    const std::size_t sent = bytes - std::min(bytes, choices);
    weftio::fuzz::look_at({data, sent}, {data + sent, bytes - sent});
    return 0;
}
