#include "session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "send/interface_watch.hpp"

namespace weftio::replay {

namespace {

constexpr std::uint64_t lead_ns =
    10'000'000; ///< from now to the anchor: time to read, plan and enqueue the first frames
constexpr auto turn = std::chrono::microseconds(500);

class session {
 public:
    session(const session_options& options, std::atomic<bool>& stop);
    /// Does everything that must precede the first frame.
    void prepare();
    /// @param anchor_ns  UTC of the start of the plan; 0: as soon as possible
    run_report run(std::uint64_t anchor_ns, const std::function<void(const progress&)>& show_progress);

 private:
    bool timed() const noexcept { return options_.feed.timing.by != pace::top_speed; }
    void preload();
    void send(const std::function<void(const progress&)>& show_progress);
    bool everything_sent() const;
    void read_notifications();
    void fail(std::string why);
    progress now() const;
    wait_for reason_to_wait(std::uint64_t next_ns) const;
    double share_done(std::uint64_t elapsed_ns, std::uint64_t sent) const;
    run_report report() const;
    file_report report_of(std::size_t file) const;

    const session_options& options_;
    std::atomic<bool>& stop_;
    playlist files_;
    frame_filter filter_;
    device device_;
    port port_;
    std::optional<flow> takes_what_comes_; ///< destroyed before the port
    interface_watch watch_;
    conveyor conveyor_;
    editor editor_;
    feeder feeder_;
    observer observer_;
    progress_engine events_;
    std::uint64_t begin_ns_ = 0, end_ns_ = 0; ///< UTC
    std::string failure_;
    bool interrupted_ = false;
};

/// The largest MTU of a port that writes a capture file, where there is no link that could be exceeded.
constexpr std::uint16_t mtu_of_a_file = 65'513;

std::uint16_t mtu_for(const session_options& options)
{
    const std::string& port = options.port;
    bool writes_file =
        port.starts_with("pcap:tx=") || (port.starts_with("pcap:rx=") && port.find(",tx=") < port.size());
    return options.mtu == 0 && writes_file ? mtu_of_a_file : options.mtu;
}

port_options port_settings(const session_options& options)
{
    bool top_speed = options.feed.timing.by == pace::top_speed;
    return {.idle = options.busy || top_speed ? idle_policy::busy : idle_policy::sleep,
            .core = options.core,
            .realtime = options.realtime,
            .mtu = mtu_for(options)};
}

/// A flow that drops what a loopback port receives from itself. Otherwise the port would soon be full.
std::optional<flow> taker_of(const port& port)
{
    if (port.driver() != "net_ring")
        return std::nullopt;
    return flow(port, {}, flow_action::drop());
}

/// Makes the arena large enough for all frames: reads the files to their end, and rewinds them.
void make_room_for_all(playlist& files, const session_options& options, const std::atomic<bool>& stop,
                       conveyor_options& settings)
{
    constexpr std::uint64_t most_frames = 1u << 30;
    playlist::item item;
    std::uint64_t frames = 0;
    while (!stop.load(std::memory_order_relaxed) && (options.feed.limit == 0 || frames < options.feed.limit) &&
           files.next(item)) {
        settings.arena_bytes +=
            (item.captured.bytes.size() + 18 + 63) / 64 * 64; // the editor may add an Ethernet header and a tag
        ++frames;
    }
    if (frames > most_frames || !files.rewind())
        throw error(errc::invalid_argument, "weftio-replay: --preload-pcap needs files that can be read twice (not "
                                            "pipes), of at most 2^30 frames; leave it out");
    settings.records = std::max(settings.records, static_cast<std::uint32_t>(frames));
}

/// A queue deep enough for half a second of most captures; at top speed a shallow one, which stays in the caches.
conveyor_options conveyor_settings(const session_options& options, playlist& files, const std::atomic<bool>& stop)
{
    conveyor_options settings{.lanes = options.lanes, .timed = options.feed.timing.by != pace::top_speed};
    if (!settings.timed)
        settings.entries = 1024;
    if (options.feed.preload)
        make_room_for_all(files, options, stop, settings);
    return settings;
}

session::session(const session_options& options, std::atomic<bool>& stop)
    : options_(options), stop_(stop), files_(options.files, options.files_by, &stop), filter_(options.filter),
      device_(device::open(options.device)), port_(port::open(options.port, port_settings(options))),
      takes_what_comes_(taker_of(port_)), watch_(options.port),
      conveyor_(port_, device_, conveyor_settings(options, files_, stop_)), editor_(options.edits, port_.mtu()),
      feeder_(conveyor_, files_, filter_, editor_, options.feed), observer_(options.files.size(), options.late_after_ns)
{
    events_.attach(conveyor_.queue(), {.on_sent =
                                           [this](const send_notification& sent) {
                                               if (auto remark = conveyor_.notified(sent.position))
                                                   observer_.observe(remark->file, remark->planned_ns, sent.time_ns);
                                           },
                                       .on_error = [this](const send_failure& failed) { fail(failed.text); }});
}

void session::fail(std::string why)
{
    if (failure_.empty())
        failure_ = std::move(why);
    stop_.store(true, std::memory_order_relaxed);
}

std::uint64_t anchor_of(const session_options& options)
{
    bool timed = options.feed.timing.by != pace::top_speed;
    return options.start_at_ns != 0 ? options.start_at_ns : utc_now_ns() + (timed ? lead_ns : 0);
}

void session::prepare()
{
    if (std::string trouble = watch_.trouble(); !trouble.empty())
        fail(trouble);
    if (options_.feed.preload && !stop_ && !feeder_.preload(stop_) && !stop_)
        fail("weftio-replay: the files exceed the memory for preloading; leave out --preload-pcap");
    conveyor_.start();
}

run_report session::run(std::uint64_t anchor_ns, const std::function<void(const progress&)>& show_progress)
{
    conveyor_.set_anchor(anchor_ns);
    send(show_progress);
    return report();
}

void session::send(const std::function<void(const progress&)>& show_progress)
{
    begin_ns_ = utc_now_ns();
    std::thread feeding([this] { feeder_.run(stop_); });
    while (!stop_.load(std::memory_order_relaxed) && !everything_sent()) {
        read_notifications();
        if (std::string trouble = watch_.trouble(); !trouble.empty())
            fail(trouble);
        show_progress(now());
        std::this_thread::sleep_for(turn);
    }
    end_ns_ = utc_now_ns();
    bool whole = everything_sent();
    interrupted_ = !whole && failure_.empty();
    stop_.store(true, std::memory_order_relaxed);
    feeding.join();
    try {
        if (!whole)
            conveyor_.flush();
    } catch (const error& error) {
        fail(error.what());
    }
    read_notifications();
    feeder_.close_accounts(end_ns_, !failure_.empty());
}

/// Whether the plan has been read to its end, the kernel has enqueued all of it, and the port is done with it.
bool session::everything_sent() const
{
    if (!feeder_.finished() || conveyor_.kernel_alive())
        return false;
    return conveyor_.queue().counters().sent >= conveyor_.taken();
}

void session::read_notifications()
{
    std::uint64_t sent = conveyor_.queue().counters().sent;
    if (events_.progress() == 0)
        conveyor_.nothing_pending(sent);
}

progress session::now() const
{
    auto counters = conveyor_.queue().counters();
    const timing& times = observer_.total();
    std::uint64_t anchor_ns = timed() ? conveyor_.anchor_ns() : begin_ns_, now_ns = utc_now_ns();
    auto since = [anchor_ns](std::uint64_t utc_ns) { return utc_ns > anchor_ns ? utc_ns - anchor_ns : 0; };
    std::uint64_t next_ns = feeder_.next_ns();
    return {.elapsed_ns = since(now_ns),
            .sent = counters.sent,
            .sent_bytes = counters.sent_bytes,
            .late = times.late,
            .planned_ns = since(times.last_planned_ns),
            .actual_ns = since(times.last_sent_ns),
            .next_ns = next_ns > now_ns ? next_ns : 0,
            .next_in_ns = next_ns > now_ns ? next_ns - now_ns : 0,
            .waits_for = reason_to_wait(next_ns),
            .share = share_done(since(now_ns), counters.sent),
            .timed = timed()};
}

/// The plan begins at the anchor. Frames count as sent later than they are published, so `sent` does not tell whether
/// the next frame to publish is the first.
wait_for session::reason_to_wait(std::uint64_t next_ns) const
{
    if (next_ns == conveyor_.anchor_ns())
        return wait_for::start;
    return options_.feed.timing.by == pace::capture ? wait_for::gap : wait_for::rate;
}

/// Fraction of the plan that is done: by time if it is timed, else by frames; at top speed also by the duration.
double session::share_done(std::uint64_t elapsed_ns, std::uint64_t sent) const
{
    auto ratio = [](std::uint64_t part, std::uint64_t whole) {
        return whole == 0 ? 0 : std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
    };
    if (timed())
        return ratio(elapsed_ns, feeder_.expected_ns());
    return std::max(ratio(sent, feeder_.expected_frames()), ratio(elapsed_ns, options_.feed.duration_ns));
}

file_report session::report_of(std::size_t file) const
{
    return {.path = files_.paths()[file],
            .frames = feeder_.accounts()[file],
            .times = observer_.file(file),
            .damaged = files_.damaged(file)};
}

run_report session::report() const
{
    run_report made;
    made.port = port_.spec();
    made.driver = port_.driver();
    made.device = device_.name();
    made.clock = conveyor_.queue().clock_name();
    made.timed = timed();
    for (std::size_t file = 0; file < files_.paths().size(); ++file)
        made.files.push_back(report_of(file));
    add_up(made);
    made.total.times = observer_.total();
    made.series = observer_.series();
    made.late_after_ns = options_.late_after_ns;
    made.handover = conveyor_.queue().schedule();
    auto counters = conveyor_.queue().counters();
    made.hardware_pacing = counters.waited != 0 && made.handover.count == 0; // the engine kept no time itself
    made.out_of_order = feeder_.out_of_order();
    made.truncated = editor_.truncated();
    made.mtu = port_.mtu();
    made.wanted_mtu = editor_.wanted_mtu();
    made.converted = editor_.converted();
    made.tx_dropped = port_.counters().tx_dropped;
    made.loops = feeder_.loops_begun();
    made.lost_notifications = counters.lost_events;
    const timing& times = made.total.times;
    made.planned_ns = times.last_planned_ns - times.first_planned_ns;
    made.actual_ns = timed() ? times.last_sent_ns - times.first_sent_ns : end_ns_ - begin_ns_;
    made.interrupted = interrupted_;
    made.endless = options_.feed.loops == 0 && options_.feed.limit == 0 && options_.feed.duration_ns == 0;
    made.skipping_is_planned = options_.skipping_is_planned;
    made.failure = failure_;
    return made;
}

progress sum_of(const progress& one, const progress& other)
{
    progress sum = one.actual_ns >= other.actual_ns ? one : other;
    sum.elapsed_ns = std::max(one.elapsed_ns, other.elapsed_ns);
    sum.sent = one.sent + other.sent;
    sum.sent_bytes = one.sent_bytes + other.sent_bytes;
    sum.late = one.late + other.late;
    const progress& sooner = one.next_in_ns <= other.next_in_ns ? one : other;
    sum.next_ns = sooner.next_ns;
    sum.next_in_ns = sooner.next_in_ns;
    sum.waits_for = sooner.waits_for;
    sum.share = std::min(one.share, other.share);
    return sum;
}

} // namespace

run_report replay_files(const session_options& options, std::atomic<bool>& stop,
                        const std::function<void(const progress&)>& show_progress)
{
    session made(options, stop);
    made.prepare();
    return made.run(anchor_of(options), show_progress);
}

std::vector<run_report> replay_split(const session_options& options, const std::string& second_port,
                                     std::atomic<bool>& stop, const std::function<void(const progress&)>& show_progress)
{
    session_options others = options;
    others.port = second_port;
    others.feed.own = side::second;
    std::array<std::atomic<bool>, 2> stops{};
    session first(options, stops[0]), second(others, stops[1]);
    first.prepare();
    second.prepare();
    const std::uint64_t anchor_ns = anchor_of(options);
    std::mutex shared;
    std::array<progress, 2> latest{};
    std::vector<run_report> reports(2);
    auto start = [&](session& each, std::size_t at) {
        return std::async(std::launch::async, [&, at] {
            reports[at] = each.run(anchor_ns, [&, at](const progress& now) {
                std::lock_guard guard(shared);
                latest[at] = now;
            });
            if (!reports[at].failure.empty())
                stops[1 - at] = true;
            std::lock_guard guard(shared); // frames sent since the last check count until the other port ends
            latest[at].sent = reports[at].total.frames.sent;
            latest[at].sent_bytes = reports[at].total.frames.sent_bytes;
            latest[at].share = 1;
        });
    };
    std::array<std::future<void>, 2> running{start(first, 0), start(second, 1)};
    for (std::future<void>& each : running) {
        while (each.wait_for(turn) != std::future_status::ready) {
            if (stop)
                stops[0] = stops[1] = true;
            std::unique_lock guard(shared);
            progress now = sum_of(latest[0], latest[1]);
            guard.unlock();
            show_progress(now);
        }
        each.get();
    }
    return reports;
}

} // namespace weftio::replay
