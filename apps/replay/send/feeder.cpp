#include "send/feeder.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <thread>

namespace weftio::replay {

namespace {

/// Frames are published this far ahead: longer than the host ever stalls, shorter than the queue's horizon.
constexpr std::uint64_t ahead_ns = 500'000'000;
constexpr unsigned frames_a_turn = 256;
constexpr std::uint64_t endless = std::numeric_limits<std::int64_t>::max();

} // namespace

std::uint64_t file_account::skipped_total() const noexcept
{
    return std::accumulate(skipped.begin(), skipped.end(), std::uint64_t{0}) -
           skipped[static_cast<std::size_t>(skip_reason::filter)];
}

feeder::feeder(conveyor& to, playlist& from, frame_filter& filter, editor& edits, const feed_options& options)
    : to_(to), from_(from), filter_(filter), edits_(edits), options_(options), plan_(options.timing),
      accounts_(from.paths().size()), splitter_(options.split)
{
    if (options_.laps)
        to_.stay_in_place();
}

bool feeder::preload(const std::atomic<bool>& stop)
{
    std::uint64_t most = options_.limit != 0 ? options_.limit : endless;
    while (!stop.load(std::memory_order_relaxed) && stored_.size() < most && from_.next(item_)) {
        if (!filter_.passes(item_.captured)) {
            skip(item_.file, skip_reason::filter);
            continue;
        }
        std::uint8_t* room = to_.reserve(edits_.room_bytes());
        if (!room)
            return false;
        std::uint32_t bytes = 0;
        if (auto reason = edits_.apply(item_.captured, 0, room, bytes)) {
            skip(item_.file, *reason);
            continue;
        }
        note(item_);
        stored_.push_back({.place = to_.keep(bytes),
                           .bytes = bytes,
                           .file = static_cast<std::uint32_t>(item_.file),
                           .time_ns = item_.captured.time_ns,
                           .has_time = item_.captured.has_time,
                           .begins_file = item_.begins_file});
        if (options_.laps)
            to_.put(stored_.back().place, bytes, 0, stored_.back().file, false);
    }
    return !stop.load(std::memory_order_relaxed);
}

void feeder::run(const std::atomic<bool>& stop)
{
    end_ = std::chrono::steady_clock::now() + std::chrono::nanoseconds(options_.duration_ns);
    if (options_.laps)
        return run_laps(stop);
    auto pause = std::chrono::microseconds(options_.timing.by == pace::top_speed ? 20 : 500);
    step last = step::put;
    std::uint64_t left = 1;
    while ((last != step::end || left > 0) && !stop.load(std::memory_order_relaxed)) {
        to_.reclaim([this](const conveyor::remark& done) { account(done); });
        unsigned fed = 0;
        while (last != step::end && fed < frames_a_turn && (last = feed_one()) == step::put)
            ++fed;
        left = to_.publish(utc_now_ns() + ahead_ns);
        look_ahead(last == step::end);
        if (last == step::full)
            last = step::put;
        if (out_of_time())
            last = step::end;
        if (fed < frames_a_turn)
            std::this_thread::sleep_for(pause);
    }
    to_.close();
    finished_.store(last == step::end && left == 0, std::memory_order_release); // false: the run was stopped
}

/// Whether an untimed run has reached its duration, which cannot limit a plan there.
bool feeder::out_of_time() const
{
    return options_.timing.by == pace::top_speed && options_.duration_ns != 0 &&
           std::chrono::steady_clock::now() >= end_;
}

void feeder::account(const conveyor::remark& done)
{
    file_account& file = accounts_[done.file];
    ++file.sent;
    file.sent_bytes += done.bytes;
    if (done.planned_ns != 0)
        return;
    file.last_seen_ns = utc_now_ns();
    if (file.first_seen_ns == 0)
        file.first_seen_ns = file.last_seen_ns;
}

feeder::step feeder::feed_one()
{
    if (at_limit())
        return step::end;
    if (!to_.has_record_room())
        return step::full;
    return options_.preload ? feed_stored() : feed_read();
}

feeder::step feeder::feed_stored()
{
    if (stored_at_ == stored_.size() && !next_pass())
        return step::end;
    const stored_frame& frame = stored_[stored_at_];
    if (frame.begins_file || stored_at_ == 0)
        plan_.next_file();
    std::uint64_t offset_ns = plan_.next(frame.time_ns, frame.has_time, frame.bytes);
    if (!within_plan(offset_ns))
        return step::end;
    ++stored_at_;
    any_in_pass_ = true;
    put(frame.place, frame.bytes, offset_ns, frame.file);
    return step::put;
}

/// Finds the next frame that passes the filter, and whether it is for this port. Returns the same frame until it is
/// consumed.
feeder::found feeder::find_item()
{
    while (!has_item_) {
        if (!from_.next(item_)) {
            if (!next_pass())
                return found::none;
            continue;
        }
        if (item_.begins_file)
            plan_.next_file();
        has_item_ = filter_.passes(item_.captured);
        if (!has_item_ && options_.own == side::first)
            skip(item_.file, skip_reason::filter);
        if (has_item_)
            mine_ = options_.split.by == split_options::rule::none || splitter_.side_of(item_.captured) == options_.own;
    }
    return mine_ ? found::mine : found::others;
}

/// Reads and puts the next frame for this port. Edits and plans frames for the other port too, so that both ports have
/// one plan.
feeder::step feeder::feed_read()
{
    for (found item = find_item(); item != found::none; item = find_item()) {
        std::uint8_t* room = to_.reserve(edits_.room_bytes());
        if (!room)
            return step::full;
        has_item_ = false;
        std::uint32_t bytes = 0;
        if (auto reason = edits_.apply(item_.captured, pass_, room, bytes)) {
            if (item == found::mine)
                skip(item_.file, *reason);
            continue;
        }
        std::uint64_t offset_ns = plan_.next(item_.captured.time_ns, item_.captured.has_time, bytes);
        if (!within_plan(offset_ns))
            return step::end;
        any_in_pass_ = true;
        if (item == found::others && ++others_ > 0) {
            last_offset_ns_ = offset_ns;
            if (at_limit())
                break;
            continue;
        }
        note(item_);
        put(to_.keep(bytes), bytes, offset_ns, item_.file);
        return step::put;
    }
    return step::end;
}

/// Starts the next loop. Returns false after the last one, or if a loop has no frames.
bool feeder::next_pass()
{
    if (!any_in_pass_ || (options_.loops != 0 && pass_ + 1 >= options_.loops))
        return false;
    if (!options_.preload && !from_.rewind())
        return false;
    stored_at_ = 0;
    any_in_pass_ = false;
    ++pass_;
    return true;
}

void feeder::put(std::uint32_t place, std::uint32_t bytes, std::uint64_t offset_ns, std::size_t file)
{
    to_.put(place, bytes, offset_ns, static_cast<std::uint32_t>(file), options_.timing.by != pace::top_speed);
    ++accounts_[file].planned;
    accounts_[file].planned_bytes += bytes;
    ++planned_;
    last_offset_ns_ = offset_ns;
}

void feeder::note(const playlist::item& of) noexcept
{
    file_account& file = accounts_[of.file];
    file.cut += of.captured.captured_bytes < of.captured.original_bytes;
    file.with_fcs += of.captured.fcs_bytes != 0;
    file.clamped += of.captured.time_clamped;
}

/// Fraction of the plan that has been put, by the frames read or by the limit that ends the plan first; 0 if unknown.
double feeder::share_planned(bool all) const
{
    if (all)
        return 1;
    auto ratio = [](std::uint64_t part, std::uint64_t whole) {
        return whole == 0 ? 0 : std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
    };
    double pass = options_.preload ? ratio(stored_at_, stored_.size()) : from_.share().value_or(0);
    double read = pass == 0 || options_.loops == 0
                      ? 0
                      : (static_cast<double>(pass_) + pass) / static_cast<double>(options_.loops);
    return std::max({read, ratio(planned_ + others_, options_.limit), ratio(last_offset_ns_, options_.duration_ns)});
}

void feeder::look_ahead(bool all)
{
    double share = share_planned(all);
    auto whole = [share](std::uint64_t part) {
        return share == 0 ? 0 : static_cast<std::uint64_t>(static_cast<double>(part) / share);
    };
    expected_frames_.store(whole(planned_), std::memory_order_relaxed);
    expected_ns_.store(whole(last_offset_ns_), std::memory_order_relaxed);
    next_ns_.store(to_.next_planned_ns(), std::memory_order_relaxed);
}

void feeder::skip(std::size_t file, skip_reason reason)
{
    ++accounts_[file].skipped[static_cast<std::size_t>(reason)];
}

/// Lets the kernel repeat the records by itself; the host only tells how many frames to send.
void feeder::run_laps(const std::atomic<bool>& stop)
{
    std::uint64_t laps = stored_.empty() ? 0 : options_.loops == 0 ? endless / stored_.size() : options_.loops;
    std::uint64_t frames = laps > endless / std::max<std::size_t>(stored_.size(), 1) ? endless : laps * stored_.size();
    if (options_.limit != 0)
        frames = std::min(frames, options_.limit);
    planned_ = frames;
    expected_frames_.store(frames < endless / 2 ? frames : 0, std::memory_order_relaxed);
    to_.publish_laps(frames);
    to_.close();
    if (options_.duration_ns != 0) {
        while (!stop.load(std::memory_order_relaxed) && to_.kernel_alive() && std::chrono::steady_clock::now() < end_)
            std::this_thread::sleep_for(std::chrono::microseconds(500));
        if (to_.kernel_alive())
            to_.end();
    }
    finished_.store(true, std::memory_order_release);
}

void feeder::close_accounts(std::uint64_t end_ns, bool failed)
{
    if (options_.laps)
        account_laps();
    to_.reclaim([this](const conveyor::remark& done) { account(done); });
    to_.for_each_unsent([this, end_ns, failed](const conveyor::remark& waiting) {
        bool was_due = waiting.planned_ns != 0 ? waiting.planned_ns <= end_ns : failed;
        accounts_[waiting.file].planned -= !was_due;
        accounts_[waiting.file].planned_bytes -= was_due ? 0 : waiting.bytes;
    });
    if (options_.preload)
        for (file_account& file : accounts_) { // read once, but sent in every pass
            for (std::uint64_t& count : file.skipped)
                count *= pass_ + 1;
            file.cut *= pass_ + 1;
            file.with_fcs *= pass_ + 1;
            file.clamped *= pass_ + 1;
        }
}

/// Accounts for whole laps and a part of one. An endless plan ends with the frames sent.
void feeder::account_laps()
{
    std::uint64_t sent = to_.queue().counters().sent;
    bool cut = options_.loops == 0 || options_.duration_ns != 0;
    if (cut)
        planned_ = std::min(planned_, sent);
    for (std::size_t at = 0; at < stored_.size(); ++at) {
        file_account& file = accounts_[stored_[at].file];
        auto times = [&](std::uint64_t frames) {
            return frames / stored_.size() + (at < frames % stored_.size() ? 1 : 0);
        };
        file.planned += times(planned_);
        file.planned_bytes += times(planned_) * stored_[at].bytes;
        file.sent += times(sent);
        file.sent_bytes += times(sent) * stored_[at].bytes;
    }
    pass_ = stored_.empty() || sent == 0 ? 0 : (sent - 1) / stored_.size();
}

} // namespace weftio::replay
