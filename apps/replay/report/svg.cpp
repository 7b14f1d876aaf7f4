#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chart.hpp"
#include "report/report.hpp"

namespace weftio::replay {

namespace {

constexpr double width = 960, height = 440, left = 70, right = 40, top = 60, bottom = 50;

/// Scales of the diagram: time to the right, error upwards, in decades from 100 ns.
struct axes {
    double seconds = 1;
    int decades = 2;

    double x(double s) const { return left + s / seconds * (width - left - right); }
    double y(double ns) const
    {
        double share = std::clamp(std::log10(std::max(ns, 1.0)) - 2, 0.0, static_cast<double>(decades)) / decades;
        return height - bottom - share * (height - top - bottom);
    }
};

/// Axes that include the line of "late".
axes fit(const run_report& report)
{
    const error_series& series = report.series;
    axes made;
    auto worst = static_cast<double>(report.late_after_ns + 1);
    for (const auto& column : series.columns())
        worst = std::max(worst, static_cast<double>(column.max_ns));
    made.decades = std::max(2, static_cast<int>(std::ceil(std::log10(worst))) - 2);
    made.seconds = std::max(1e-3, static_cast<double>(series.columns().size() * series.column_ns()) / 1e9);
    return made;
}

std::string grid(const axes& on)
{
    std::string svg;
    for (int decade = 0; decade <= on.decades; ++decade) {
        double ns = std::pow(10, decade + 2);
        svg += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/>"
                           "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                           left, width - right, on.y(ns), on.y(ns), left - 6, on.y(ns) + 4,
                           duration_text(static_cast<std::uint64_t>(ns)));
    }
    const double step = chart::grid_step(on.seconds);
    const auto steps = static_cast<unsigned>(on.seconds / step + 1e-9); // because 0.3 / 0.1 is less than 3
    for (unsigned at = 0; at <= steps; ++at)
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.4g} s</text>\n", on.x(at * step),
                           height - bottom + 18, at * step);
    return svg;
}

/// Names the files and the port: up to three files, without their folders.
std::string subject(const run_report& report)
{
    std::string text;
    for (std::size_t at = 0; at < report.files.size() && at < 3; ++at) {
        const std::string& path = report.files[at].path;
        text += (at == 0 ? "" : ", ") + (path == "-" ? "standard input" : path.substr(path.rfind('/') + 1));
    }
    if (report.files.size() > 3)
        text += fmt::format(" and {} more", report.files.size() - 3);
    return chart::escaped(fmt::format("{} on {} ({})", text, report.port, report.driver));
}

/// The line of "late", with the number of frames above it. Drawn under the curve, which it must not hide, and explained
/// in the corner.
std::string late_line(const run_report& report, const axes& on)
{
    constexpr std::uint64_t scale_begin_ns = 100;
    if (report.late_after_ns < scale_begin_ns)
        return {};
    double y = on.y(static_cast<double>(report.late_after_ns));
    return fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"late\"/>\n"
        "<text x=\"{}\" y=\"42\" text-anchor=\"end\" class=\"late\">- - - late, by more than {}: {}</text>\n",
        left, width - right, y, y, width - right, duration_text(report.late_after_ns),
        frames_text(report.total.times.late));
}

std::string heading(const run_report& report)
{
    const apps::histogram& errors = report.total.times.errors;
    std::string figures = errors.count() == 0
                              ? "no frame was sent"
                              : fmt::format("sent minus planned, {}: p50 {}, p99 {}, max {}",
                                            frames_text(errors.count()), duration_text(errors.quantile_ns(0.5)),
                                            duration_text(errors.quantile_ns(0.99)), duration_text(errors.max_ns()));
    return fmt::format(
        "<text x=\"{}\" y=\"22\" class=\"title\">Schedule error of {}</text>\n<text x=\"{}\" y=\"42\">{}</text>\n",
        left, subject(report), left, figures);
}

} // namespace

std::string to_svg(const run_report& report)
{
    axes on = fit(report);
    double column_s = static_cast<double>(report.series.column_ns()) / 1e9;
    std::string ranges, mean;
    for (std::size_t at = 0; at < report.series.columns().size(); ++at) {
        const auto& column = report.series.columns()[at];
        if (column.count == 0)
            continue;
        double x = on.x((static_cast<double>(at) + 0.5) * column_s);
        ranges += fmt::format("M{:.1f} {:.1f}V{:.1f}", x, on.y(static_cast<double>(column.min_ns)),
                              on.y(static_cast<double>(column.max_ns)));
        mean += fmt::format("{}{:.1f} {:.1f}", mean.empty() ? "M" : "L", x,
                            on.y(static_cast<double>(column.sum_ns) / static_cast<double>(column.count)));
    }
    return chart::document(width, height, "line.late{stroke:#c33;stroke-dasharray:6 4}text.late{fill:#c33}",
                           fmt::format("{}{}{}<path d=\"{}\" stroke=\"#9ec5e8\"/>\n<path d=\"{}\" stroke=\"#1a5fa8\" "
                                       "stroke-width=\"1.5\"/>\n<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">planned "
                                       "time; line: mean, bars: minimum to maximum</text>\n",
                                       heading(report), grid(on), late_line(report, on), ranges, mean,
                                       (left + width - right) / 2, height - 10));
}

} // namespace weftio::replay
