#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "checks.hpp"
#include "program.hpp"

namespace weftio::run {

namespace {

/// An option that takes a value.
struct option {
    std::string_view name, example;
    std::string command::*to;
    void (*check)(const std::string& name, const std::string& value);
};
constexpr std::array options{option{"--wire", "lab", &command::wire, check_wire},
                             option{"--port", "iface:eth0", &command::port, check_port},
                             option{"--address", "10.0.0.1", &command::address, check_address},
                             option{"--devices", "2", &command::devices, check_devices},
                             option{"--dump", "out.pcapng", &command::dump, check_dump},
                             option{"--loss", "0.01,7", &command::loss, check_loss},
                             option{"--stale", "fail", &command::stale, check_stale},
                             option{"--show", "4711", &command::process, check_process}};

[[noreturn]] void refuse(const std::string& why)
{
    throw refusal(own_failure, why);
}

command say(int exit_code, std::string text)
{
    return {.what = command::action::say, .text = std::move(text), .exit_code = exit_code};
}

bool is_flag(std::string_view name, std::string_view short_name, std::string_view long_name)
{
    return name == short_name || name == long_name;
}

/// Whether an argument behind an option is its value: not the next option.
bool is_value(std::string_view argument)
{
    return argument.empty() || argument[0] != '-' ||
           (argument.size() > 1 && std::isdigit(static_cast<unsigned char>(argument[1])) != 0);
}

/// What stands in front of the program.
struct options_read {
    command to{.what = command::action::start};
    int program = 1; ///< where the program stands on the command line; argc when there is none
    bool help = false, version = false;
    std::array<bool, options.size()> given{};

    bool has(std::string_view name) const
    {
        return given[static_cast<std::size_t>(std::ranges::find(options, name, &option::name) - options.begin())];
    }
};

/// Reads an option with its value. Returns how many arguments they are.
int read_option(int left, const char* const* argv, options_read& into)
{
    const std::string_view argument = argv[0];
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const option* const found = std::ranges::find(options, name, &option::name);
    if (name == "--help" || name == "--version")
        refuse(fmt::format("{}: takes no value", name));
    if (found == options.end())
        refuse(fmt::format("{}: no such option", name));
    bool& given = into.given[static_cast<std::size_t>(found - options.begin())];
    if (given)
        refuse(fmt::format("{}: given twice; give it once", name));
    given = true;
    const bool has_own = equals != argument.npos;
    if (!has_own && (left < 2 || !is_value(argv[1])))
        refuse(fmt::format("{}: has no value; write it as {} {}", name, name, found->example));
    into.to.*found->to = has_own ? argument.substr(equals + 1) : argv[1];
    return has_own ? 1 : 2;
}

options_read read(int argc, const char* const* argv)
{
    options_read all;
    int at = 1;
    while (at < argc && argv[at][0] == '-') {
        const std::string_view argument = argv[at];
        const bool help = is_flag(argument, "-h", "--help"), version = is_flag(argument, "-V", "--version");
        all.help |= help;
        all.version |= version;
        if (help || version || argument == "--")
            ++at;
        else
            at += read_option(argc - at, argv + at, all);
        if (argument == "--")
            break;
    }
    all.program = at;
    return all;
}

void check_together(const options_read& all)
{
    if (all.has("--wire") && all.has("--port"))
        refuse("--wire and --port: give only one of them");
    if (all.has("--loss") && all.has("--port"))
        refuse("--loss and --port: only a wire in memory can lose frames on purpose");
}

command parse(int argc, const char* const* argv)
{
    options_read all = read(argc, argv);
    command& to = all.to;
    if (all.help || all.version)
        return say(0, all.help ? std::string(help_text()) : "weftio-run " WEFTIO_VERSION "\n");
    if (all.has("--show")) {
        if (all.program != argc)
            refuse("--show and a program: give only one of them");
        to.what = command::action::show;
    }
    check_together(all);
    for (std::size_t each = 0; each != options.size(); ++each)
        if (all.given[each])
            options[each].check(std::string(options[each].name), to.*options[each].to);
    if (!to.dump.empty())
        to.dump = std::filesystem::absolute(to.dump).string(); // as it is wherever the program goes
    to.program.assign(argv + all.program, argv + argc);
    if (to.what == command::action::start && to.program.empty())
        refuse("name the program to start");
    return to;
}

} // namespace

command parse_command_line(int argc, const char* const* argv)
try {
    return parse(argc, argv);
} catch (const refusal& wrong) {
    return say(wrong.exit_code, fmt::format("weftio-run: {}\nRun with --help for usage.\n", wrong.what()));
}

} // namespace weftio::run
