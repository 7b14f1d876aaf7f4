#include "options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <CLI/CLI.hpp>

namespace weftio::files {

namespace {

command say(int exit_code, std::string text)
{
    return {.what = command::action::say, .text = std::move(text), .exit_code = exit_code};
}

[[noreturn]] void refuse(const std::string& why)
{
    throw CLI::ValidationError(why);
}

/// Options as CLI11 parses them; checked and converted to a command afterwards.
struct raw_options {
    std::vector<std::string> names;
    std::string sizes = "1m", file_size, way, stats;
    bool check = false, read = false, write = false, mixed = false, no_fio = false, help = false, version = false;
};

void add_check(CLI::App& app, raw_options& raw, command& to)
{
    app.add_flag("--check", raw.check);
    app.add_option("--stats", raw.stats);
    app.add_option("--config", to.check.configuration);
    app.add_option("--topology", to.check.topology);
    app.add_option("--root", to.check.root);
}

void add_bench(CLI::App& app, raw_options& raw, command& to)
{
    app.add_option("-w,--workers", to.bench.workers)->check(CLI::Range(1, 256));
    app.add_option("-b,--size", raw.sizes);
    app.add_option("-s,--file-size", raw.file_size);
    app.add_option("--seconds", to.bench.seconds)
        ->check(CLI::Range(0.01, 3600.0))
        ->check([](const std::string& text) -> std::string {
            return text.find_first_of("nN") == text.npos ? "" : "not a number";
        });
    app.add_option("--rounds", to.bench.rounds)->check(CLI::Range(1, 1000));
    app.add_flag("--no-fio", raw.no_fio);
    app.add_option("--plot", to.bench.plot);
    app.add_flag("--read", raw.read);
    app.add_flag("--write", raw.write);
    app.add_flag("--mixed", raw.mixed);
    app.add_flag("--random", to.bench.random);
    app.add_flag("--direct", to.bench.direct);
    app.add_flag("--verify", to.bench.verify);
    app.add_option("--way", raw.way);
    app.add_option("-g,--device", to.bench.device);
}

std::uint64_t size_of(const char* option, const std::string& text)
{
    const std::uint64_t bytes = parse_size(text);
    if (bytes == 0)
        refuse(fmt::format("{} {}: write it as 4096, 4k, 1m or 2g", option, text));
    return bytes;
}

void take_bench(const raw_options& raw, command& to)
{
    bench_options& bench = to.bench;
    if (raw.names.size() > 1)
        refuse(fmt::format("{}: name only one file", raw.names[1]));
    bench.path = raw.names.empty() ? "" : raw.names[0];
    if (!raw.file_size.empty())
        bench.file_bytes = size_of("--file-size", raw.file_size);
    bench.sizes.clear();
    for (std::size_t at = 0; at <= raw.sizes.size();) {
        const std::size_t end = std::min(raw.sizes.find(',', at), raw.sizes.size());
        bench.sizes.push_back(size_of("--size", raw.sizes.substr(at, end - at)));
        at = end + 1;
        if (bench.file_bytes != 0 && bench.sizes.back() > bench.file_bytes / bench.workers)
            refuse(fmt::format("--size {}: {} workers with that many bytes each exceed a file of {}", raw.sizes,
                               bench.workers, raw.file_size));
        if (bench.direct && bench.sizes.back() % 4096 != 0)
            refuse(fmt::format("--size {}: --direct needs multiples of 4096", raw.sizes));
    }
    bench.fio = !raw.no_fio;
    if (!bench.plot.empty() && !bench.plot.ends_with(".svg"))
        refuse(fmt::format("--plot {}: the plot is an SVG file; name a file that ends in .svg", bench.plot));
    if (raw.read + raw.write + raw.mixed > 1)
        refuse("--read, --write and --mixed: give only one of them");
    bench.what = raw.write   ? bench_options::load::write
                 : raw.mixed ? bench_options::load::mixed
                             : bench_options::load::read;
    if (raw.way == "uring" || raw.way == "posix")
        bench.only = raw.way == "uring" ? file_way::uring : file_way::posix;
    else if (!raw.way.empty())
        refuse(fmt::format("--way {}: name uring or posix", raw.way));
}

void take_process(const std::string& text, command& to)
{
    const char* end = text.data() + text.size();
    if (const auto got = std::from_chars(text.data(), end, to.process);
        got.ptr != end || got.ec != std::errc{} || to.process == 0)
        refuse(fmt::format("--stats {}: not a process ID; `pidof PROGRAM` prints it", text));
}

command parse(int argc, const char* const* argv)
{
    const bool bench = argc > 1 && std::string_view(argv[1]) == "bench";
    command to;
    raw_options raw;
    CLI::App app;
    app.set_help_flag();
    if (bench)
        add_bench(app, raw, to);
    else
        add_check(app, raw, to);
    app.add_option("names", raw.names);
    app.add_flag("--json", to.json);
    app.add_flag("-h,--help", raw.help);
    app.add_flag("-V,--version", raw.version);
    app.parse(argc - (bench ? 1 : 0), argv + (bench ? 1 : 0));
    if (raw.help || raw.version)
        return say(0, raw.help ? std::string(help_text()) : "weftio-files " WEFTIO_VERSION "\n");
    to.what = bench ? command::action::bench : raw.check ? command::action::check : command::action::stats;
    if (bench)
        take_bench(raw, to);
    else if (raw.check && !raw.stats.empty())
        refuse("--check and --stats: give only one of them");
    else if (raw.check)
        to.check.paths = raw.names;
    else if (raw.stats.empty())
        refuse(raw.names.empty() ? "nothing to do; give --check, bench or --stats"
                                 : fmt::format("{}: no command; give --check before it", raw.names[0]));
    else
        take_process(raw.stats, to);
    return to;
}

} // namespace

std::uint64_t parse_size(std::string_view text) noexcept
{
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
    const unsigned shift = unit == "k" || unit == "K"   ? 10
                           : unit == "m" || unit == "M" ? 20
                           : unit == "g" || unit == "G" ? 30
                                                        : 0;
    if (error != std::errc{} || (shift == 0 && !unit.empty()) || value > (std::uint64_t{1} << 62 >> shift))
        return 0;
    return value << shift;
}

command parse_command_line(int argc, const char* const* argv)
try {
    return parse(argc, argv);
} catch (const CLI::Error& wrong) {
    return say(1, fmt::format("weftio-files: {}\nRun with --help for usage.\n", wrong.what()));
}

} // namespace weftio::files
