#include "report/screen.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "output.hpp"
#include "report/units.hpp"

namespace weftio::replay {

namespace {

constexpr std::chrono::milliseconds refresh(200);
constexpr std::uint64_t shown_wait_ns = 2 * second_ns;   ///< from here on, the line shows the wait for the next frame
constexpr std::uint64_t remark_wait_ns = 60 * second_ns; ///< from here on, a remark does too

/// A duration with at most tenths of a second.
std::string coarse_text(std::uint64_t ns)
{
    return ns < 120 * second_ns ? fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9) : duration_text(ns);
}

std::string signed_difference(std::uint64_t actual_ns, std::uint64_t planned_ns)
{
    return signed_duration_text(static_cast<std::int64_t>(actual_ns - planned_ns));
}

/// Parts of the line, the most important first.
std::vector<std::string> parts_of(const progress& at, const progress& before)
{
    std::vector<std::string> parts;
    if (at.share > 0) {
        parts.push_back(fmt::format("{:3.0f} %", std::floor(at.share * 100)));
        double left_ns = static_cast<double>(at.elapsed_ns) * (1 / at.share - 1);
        if (at.elapsed_ns > 0 && left_ns < 9e18)
            parts.push_back(coarse_text(static_cast<std::uint64_t>(left_ns)) + " left");
    }
    if (at.next_in_ns >= shown_wait_ns)
        parts.push_back("next frame in " + coarse_text(at.next_in_ns));
    parts.push_back(coarse_text(at.elapsed_ns));
    parts.push_back(frames_text(at.sent));
    if (at.elapsed_ns > before.elapsed_ns) {
        double seconds = static_cast<double>(at.elapsed_ns - before.elapsed_ns) / 1e9;
        parts.push_back(frame_rate_text(static_cast<double>(at.sent - before.sent) / seconds));
        parts.push_back(bit_rate_text(static_cast<double>(at.sent_bytes - before.sent_bytes) * 8 / seconds));
    }
    if (at.timed) {
        parts.push_back(grouped(at.late) + " late");
        parts.push_back("error " + signed_difference(at.actual_ns, at.planned_ns));
    }
    return parts;
}

} // namespace

std::size_t terminal_columns() noexcept
{
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string progress_text(const progress& at, const progress& before, std::size_t columns)
{
    std::string text;
    for (const std::string& part : parts_of(at, before)) {
        std::size_t gap = text.empty() ? 0 : 2;
        if (text.size() + gap + part.size() > columns)
            break;
        text += std::string(gap, ' ') + part;
    }
    return text;
}

void screen::show(const progress& at)
{
    if (options_.remarks)
        remark(at);
    if (auto now = std::chrono::steady_clock::now(); options_.terminal && now >= shown_at_ + refresh) {
        // Leaves the last column free: on some terminals a cursor behind it is on the next line.
        std::fputs(fmt::format("\r{}\x1b[K", progress_text(at, last_line_, terminal_columns() - 1)).c_str(), stderr);
        shown_ = true;
        shown_at_ = now;
        last_line_ = at;
    }
    if (stats_ns_ != 0 && failure_.empty() && at.elapsed_ns >= last_stats_.elapsed_ns + stats_ns_) {
        print_stats(at);
        last_stats_ = at;
    }
}

void screen::print_stats(const progress& at)
{
    const std::string line = progress_text(at, last_stats_, std::string::npos);
    if (!options_.stats_on_error) {
        failure_ = apps::print_out(line + '\n');
        return;
    }
    end();
    apps::say(line);
}

/// Prints a remark on a long wait, once for each frame.
void screen::remark(const progress& at)
{
    if (at.next_in_ns < remark_wait_ns || at.next_ns == remarked_ns_)
        return;
    remarked_ns_ = at.next_ns;
    end();
    const std::string wait = duration_text(at.next_in_ns);
    switch (at.waits_for) {
        case wait_for::start: return apps::say(fmt::format("weftio-replay: the first frame goes in {}", wait));
        case wait_for::rate:
            return apps::say(
                fmt::format("weftio-replay: the next frame goes in {}; a larger --pps or --mbps shortens it", wait));
        case wait_for::gap: break;
    }
    apps::say(
        fmt::format("weftio-replay: the next frame of the capture goes in {}; --max-gap 1s shortens such gaps", wait));
}

void screen::end()
{
    if (shown_)
        std::fputs("\r\x1b[K", stderr);
    shown_ = false;
}

} // namespace weftio::replay
