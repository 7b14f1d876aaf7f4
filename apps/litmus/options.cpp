#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <CLI/CLI.hpp>

#include "report.hpp"

namespace weftio::litmus {

namespace {

[[noreturn]] void refuse(const std::string& why)
{
    throw CLI::ValidationError(why);
}

std::vector<std::string> split(const std::string& text)
{
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

std::vector<cell> chosen(const std::string& only, bool given, bool strict, gpu_memories memories)
{
    const std::vector<std::string> wanted = given ? split(only) : std::vector<std::string>{};
    if (std::ranges::count(wanted, "") != 0)
        refuse(fmt::format("--only {}: a word is empty; --list prints those of all rows", only));
    std::vector<cell> cells;
    for (const cell& each : all_cells(memories)) {
        const std::string words = each.words();
        if ((!strict || !each.relaxed) &&
            std::ranges::all_of(wanted, [&](const std::string& part) { return words.find(part) != words.npos; }))
            cells.push_back(each);
    }
    if (cells.empty())
        refuse(fmt::format("--only {}: no row has these words; --list prints them", only));
    return cells;
}

gpu_memories memories_of(const std::string& text)
{
    gpu_memories made{.alloc = false};
    for (const std::string& each : split(text))
        if (each == "alloc")
            made.alloc = true;
        else if (each == "vmm")
            made.vmm = true;
        else
            refuse(fmt::format("--memory {}: {} is no memory of a GPU; give alloc, vmm, or alloc,vmm", text,
                               each.empty() ? "an empty word" : each));
    return made;
}

command parse(int argc, const char* const* argv)
{
    command to;
    std::string only, memory = "alloc";
    bool strict = false, list = false, help = false, version = false;
    CLI::App app;
    app.set_help_flag();
    app.add_option("-n,--trials", to.trial.trials)->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
    app.add_option("--until", to.trial.until)->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
    CLI::Option* const selects = app.add_option("--only", only);
    app.add_flag("--list", list);
    app.add_option("-p,--pairs", to.trial.pairs)->check(CLI::Range(1, 8192));
    app.add_option("-b,--bytes", to.trial.bytes)->check(CLI::Range(8, 1 << 20));
    app.add_flag("--strict", strict);
    CLI::Option* const device = app.add_option("-d,--device", to.port.device);
    unsigned port = 1;
    app.add_option("-i,--port", port)->check(CLI::Range(1, 254));
    app.add_option("-x,--gid-index", to.port.gid_index)->check(CLI::Range(0, 255));
    CLI::Option* const second = app.add_option("--second", to.second);
    CLI::Option* const gpu = app.add_option("--gpu", to.gpu);
    app.add_option("--peer-gpu", to.peer_gpu)->needs(gpu);
    app.add_option("--memory", memory);
    app.add_flag("--json", to.json);
    app.add_flag("-h,--help", help);
    app.add_flag("-V,--version", version);
    app.parse(argc, argv);
    to.port.port = static_cast<std::uint8_t>(port);
    if (help || version) {
        to.text = help ? std::string(help_text()) : "weftio-litmus " WEFTIO_VERSION "\n";
        return to;
    }
    if (device->count() != 0 && to.port.device.empty())
        refuse("--device: the name is empty; leave the option out for the first device");
    if (second->count() != 0 && to.second == to.port.device)
        refuse(fmt::format("--second {}: that is the device that writes the data; give another one", to.second));
    if (to.trial.bytes % 8 != 0)
        refuse(fmt::format("--bytes {}: not a multiple of 8", to.trial.bytes));
    constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;
    if (std::uint64_t{to.trial.pairs} * to.trial.bytes > most_bytes)
        refuse(fmt::format("--pairs {} of --bytes {}: twice as many bytes are needed; give 1 GiB of data at most",
                           to.trial.pairs, to.trial.bytes));
    to.trial.pairs = static_cast<std::uint32_t>(std::min<std::uint64_t>(to.trial.pairs, to.trial.trials));
    to.cells = chosen(only, selects->count() != 0, strict, memories_of(memory));
    if (list && to.json)
        to.text = to_json(to.cells);
    else if (list)
        for (const cell& each : to.cells)
            to.text += each.words() + "\n";
    return to;
}

} // namespace

command parse_command_line(int argc, const char* const* argv)
try {
    return parse(argc, argv);
} catch (const CLI::Error& wrong) {
    return {.text = fmt::format("weftio-litmus: {}\nRun with --help for usage.\n", wrong.what()), .exit_code = 1};
}

} // namespace weftio::litmus
