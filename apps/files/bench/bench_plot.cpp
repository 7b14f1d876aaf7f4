#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "bench/bench.hpp"
#include "chart.hpp"

namespace weftio::files {

namespace {

constexpr double width = 960, panel = 280, left = 80, right = 20, top = 50, bottom = 40;
constexpr double mib = 1 << 20;

/// A diagram among others: time to the right, MiB/s upwards.
struct axes {
    double begin; ///< upper edge
    double seconds, most;

    double x(double s) const { return left + s / seconds * (width - left - right); }
    double y(double rate) const { return begin + panel - bottom - rate / most * (panel - top - bottom); }
};

std::string_view color_of(const bench_run& run)
{
    return run.how == "weftio" ? "#1a5fa8" : run.how == "fio" ? "#c33" : "#999";
}

/// MiB/s in each part of its time.
std::vector<double> rates_of(const bench_run& run, double seconds)
{
    std::vector<double> rates;
    for (const std::uint64_t bytes : run.progress)
        rates.push_back(static_cast<double>(bytes) / mib / (seconds / static_cast<double>(run.progress.size())));
    return rates;
}

std::string grid(const axes& on)
{
    std::string svg;
    const double step = chart::grid_step(on.most), second = chart::grid_step(on.seconds);
    for (double rate = 0; rate <= on.most * (1 + 1e-9); rate += step)
        svg += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/>"
                           "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.6g}</text>\n",
                           left, width - right, on.y(rate), on.y(rate), left - 6, on.y(rate) + 4, rate);
    for (double at = 0; at <= on.seconds * (1 + 1e-9); at += second)
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.4g} s</text>\n", on.x(at),
                           on.begin + panel - bottom + 18, at);
    return svg;
}

/// A step for each part, and the name of the way in the corner.
std::string curve(const bench_run& run, const axes& on, double name_at)
{
    std::string path;
    const std::vector<double> rates = rates_of(run, on.seconds);
    for (std::size_t at = 0; at < rates.size(); ++at) {
        const double part = on.seconds / static_cast<double>(rates.size()), from = static_cast<double>(at) * part;
        path +=
            fmt::format("{}{:.1f} {:.1f}H{:.1f}", at == 0 ? "M" : "L", on.x(from), on.y(rates[at]), on.x(from + part));
    }
    return fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-width=\"1.5\"/>\n"
                       "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" style=\"fill:{}\">{}</text>\n",
                       path, color_of(run), name_at, on.begin + 40, color_of(run), chart::escaped(run.how));
}

/// The runs of one size, from `first` on.
std::string diagram(const bench_options& options, const std::vector<bench_run>& runs, std::size_t first, double begin)
{
    axes on{.begin = begin, .seconds = options.seconds, .most = 0};
    std::size_t last = first;
    for (; last < runs.size() && runs[last].size == runs[first].size; ++last)
        for (const double rate : rates_of(runs[last], on.seconds))
            on.most = std::max(on.most, rate);
    on.most = std::max(on.most, 1e-3);
    std::string svg = grid(on);
    for (std::size_t at = first; at < last; ++at)
        svg += curve(runs[at], on, width - right - static_cast<double>(last - 1 - at) * 100);
    return svg + fmt::format("<text x=\"{}\" y=\"{}\" class=\"title\">{} bytes each, MiB/s, {} workers, {}</text>\n",
                             left, begin + 22, runs[first].size, options.workers, chart::escaped(options.device));
}

} // namespace

std::string to_svg(const bench_options& options, const std::vector<bench_run>& runs)
{
    std::string body;
    double begin = 0;
    for (std::size_t at = 0; at < runs.size(); ++at) {
        if (at != 0 && runs[at].size == runs[at - 1].size)
            continue;
        body += diagram(options, runs, at, begin);
        begin += panel;
    }
    return chart::document(width, begin, "", body);
}

} // namespace weftio::files
