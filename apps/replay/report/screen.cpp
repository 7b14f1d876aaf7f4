#include "report/screen.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace weftio::replay {

namespace {
constexpr std::uint64_t refresh_ns = 200'000'000;

/// A line that is longer is continued on the next, where the next one does not overwrite it.
std::size_t columns()
{
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79;
}
} // namespace

void screen::show(const progress& at)
{
    if (terminal_ && at.elapsed_ns >= last_line_.elapsed_ns + refresh_ns) {
        fmt::print(stderr, "\r{:.{}}\x1b[K", line(at, last_line_), columns());
        shown_ = true;
        last_line_ = at;
    }
    if (stats_ns_ != 0 && at.elapsed_ns >= last_stats_.elapsed_ns + stats_ns_) {
        fmt::print("{}\n", line(at, last_stats_));
        std::fflush(stdout);
        last_stats_ = at;
    }
}

void screen::end() const
{
    if (shown_)
        fmt::print(stderr, "\r\x1b[K");
}

/// Rates are of the time since `before`.
std::string screen::line(const progress& at, const progress& before) const
{
    double seconds = static_cast<double>(at.elapsed_ns - before.elapsed_ns) / 1e9;
    std::string text = fmt::format("{:.1f} s  {} frames  {:.4g} kpps  {:.4g} Mbit/s", static_cast<double>(at.elapsed_ns) / 1e9,
                                   grouped(at.sent), static_cast<double>(at.sent - before.sent) / seconds / 1e3,
                                   static_cast<double>(at.sent_bytes - before.sent_bytes) * 8 / seconds / 1e6);
    if (at.timed)
        text += fmt::format("  late {}  planned {:.6f} s  actual {:.6f} s", grouped(at.late),
                            static_cast<double>(at.planned_ns) / 1e9, static_cast<double>(at.actual_ns) / 1e9);
    return text;
}

} // namespace weftio::replay
