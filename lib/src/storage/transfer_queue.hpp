// Transfers between files and memory of any kind: divided into ios of a way, staged where needed, put together again.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "storage/plan.hpp"
#include "storage/staging.hpp"
#include "storage/statistics.hpp"

namespace weftio::storage {

/// What is to be done. Reads and writes of any offset, size, alignment and memory; a sync has neither.
struct request {
    io::kind what = io::kind::read;
    std::shared_ptr<open_file> file{};
    place memory{};
    std::size_t bytes = 0;
    std::uint64_t offset = 0;
    std::uint64_t tag = 0; ///< comes back with the result
};

struct ended {
    std::uint64_t tag = 0;
    file_result result{};
};

/// Transfers that are in flight together, of one thread at a time. Each ends once, is counted once by its context, and
/// has its result. Never blocks but in wait(), and where its way says so.
class transfer_queue {
 public:
    /// @param most  transfers in flight
    transfer_queue(context& owner, std::unique_ptr<way> way, std::size_t most);
    transfer_queue(const transfer_queue&) = delete;
    transfer_queue& operator=(const transfer_queue&) = delete;
    /// Cancels, and waits for what the way has begun.
    ~transfer_queue();

    /// Takes the transfer; it begins at the next poll(). False: `most` are in flight or were not taken.
    bool submit(request request);
    /// Moves all on: takes results, begins ios and copies.
    void poll();
    /// Takes transfers that have ended, in that order.
    std::size_t take(std::span<ended> to);
    /// Polls until a transfer can be taken, or until `timeout` is over; may return early.
    void wait(std::chrono::nanoseconds timeout);
    /// Ends transfers early: what has not begun does not begin, and the way is asked to cancel the rest.
    void cancel_all();

    std::size_t most() const noexcept { return most_; }
    void allow(std::size_t most) noexcept { most_ = most; }
    std::size_t in_flight() const noexcept { return in_flight_; }
    std::size_t untaken() const noexcept { return ended_.size(); }
    file_way name() const noexcept { return way_->name(); }

 private:
    struct transfer {
        storage::request request;
        storage::plan plan;
        storage::measured how;
        std::uint64_t next = 0; ///< where the next piece begins, in zone number `zone`
        std::uint64_t stop = 0; ///< nothing from here on is transferred: the end, that of the file, or an error
        std::size_t zone = 0;
        std::size_t under_way = 0; ///< pieces
        int error = 0;             ///< at `stop`
        bool begun = false;        ///< all pieces have, or never will
        bool canceled = false;
        bool waits_for_own = false; ///< for its pieces, before it goes on
        bool waits_at_gate = false;
        write_gate::kind inside = write_gate::kind::none; ///< of the gate of its file
        storage::staging* staging = nullptr;              ///< of the zones that are staged
    };
    /// What a piece waits for.
    enum class stage : std::uint8_t { none, io, landing, fetching };
    /// A part of a transfer that is under way.
    struct piece {
        transfer* of = nullptr;
        stage at = stage::none;
        storage::io io{};              ///< the rest of it, aligned as its zone wants it
        std::uint64_t begin = 0;       ///< what the transfer wants of it: file offsets
        std::uint64_t end = 0;         ///< of that
        std::uint64_t io_begin = 0;    ///< file offset of the first byte at `buffer`
        std::byte* buffer = nullptr;   ///< where the ios put or find their bytes
        std::uint32_t align = 1;       ///< of the zone
        staging::slot* slot = nullptr; ///< nullptr: `buffer` is the caller's memory
        std::uint64_t batch = 0;       ///< of the copy that is waited for
    };

    void begin(transfer& which);
    void begin_pieces();
    /// Whether a transfer has begun all its pieces, or waits for a free piece, or aside.
    enum class progress : std::uint8_t { all_begun, full, aside };
    progress begin_pieces(transfer& which);
    progress enter(transfer& which, write_gate::kind wanted);
    void leave_gate(transfer& which);
    bool next_zone(transfer& which) const;
    bool begin_piece(transfer& which, const zone& in);
    bool find_staging(transfer& which, const zone& in);
    void fill_slot(piece& which);
    void submit_io(piece& which);
    void submit_again();
    void reap();
    void took(piece& which, std::int64_t result);
    void conclude(piece& which, int error);
    void poll_copies();
    void free_piece(piece& which);
    void stop_at(transfer& which, std::uint64_t position, int error);
    void end_if_done(transfer& which);
    std::byte* memory_at(const transfer& which, std::uint64_t position) const;

    context& owner_;
    std::unique_ptr<way> way_;
    std::size_t most_;
    const std::size_t slot_bytes_;
    std::size_t in_flight_ = 0;
    std::deque<transfer> transfers_; ///< stay where they are
    std::vector<transfer*> free_transfers_;
    std::deque<transfer*> beginning_; ///< those with pieces that have not begun
    std::vector<transfer*> gated_;    ///< wait at the gate of their file
    std::vector<piece> pieces_;
    std::vector<piece*> free_pieces_;
    std::vector<piece*> again_;   ///< the way had no room
    std::vector<piece*> copying_; ///< wait for a copy engine
    std::deque<ended> ended_;
    std::vector<std::unique_ptr<storage::staging>> stagings_; ///< one for each device, and one for the host
};

} // namespace weftio::storage
