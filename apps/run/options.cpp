#include "options.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "verbs/seam.hpp"

namespace weftio::run {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view options_with_value[] = {"--wire", "--port", "--address", "--devices",
                                                   "--dump", "--loss", "--show"};
constexpr std::size_t longest_wire = 64;

command say(int exit_code, std::string text)
{
    return {.what = command::action::say, .text = std::move(text), .exit_code = exit_code};
}

[[noreturn]] void refuse(const std::string& why)
{
    throw CLI::ValidationError(why);
}

/// Where the program stands on the command line; argc when there is none.
int find_program(int argc, const char* const* argv)
{
    int at = 1;
    while (at < argc && argv[at][0] == '-' && std::string_view(argv[at]) != "--")
        at += std::ranges::count(options_with_value, argv[at]) != 0 ? 2 : 1;
    return std::min(at, argc);
}

void check_wire(const std::string& name)
{
    const bool fits = !name.empty() && name.size() <= longest_wire && std::ranges::all_of(name, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
    });
    if (!fits)
        refuse(fmt::format("--wire {}: name it with 1 to {} letters, digits, '-', '_' and '.'", name, longest_wire));
}

void check_address(const std::string& text)
{
    in6_addr binary;
    if (::inet_pton(AF_INET, text.c_str(), &binary) != 1 && ::inet_pton(AF_INET6, text.c_str(), &binary) != 1)
        refuse(fmt::format("--address {}: is no address; write it as 10.0.0.1 or fd00::1", text));
}

void check_devices(const std::string& text)
{
    const bool fits = !text.empty() && text.size() <= 2 &&
                      std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!fits || std::stoul(text) < 1 || std::stoul(text) > verbs::most_devices)
        refuse(fmt::format("--devices {}: is no number from 1 to {}", text, verbs::most_devices));
}

void check_loss(const std::string& text)
{
    double share = 0;
    unsigned long long seed = 0;
    int read = 0;
    const bool alone = std::sscanf(text.c_str(), "%lf%n", &share, &read) == 1 && read == static_cast<int>(text.size());
    const bool both =
        std::sscanf(text.c_str(), "%lf,%llu%n", &share, &seed, &read) == 2 && read == static_cast<int>(text.size());
    if (!(alone || both) || !(share >= 0 && share <= 1))
        refuse(fmt::format("--loss {}: is no share from 0 to 1, with or without a seed behind it; write 0.01 or 0.01,7",
                           text));
}

void check_process(const std::string& text)
{
    const bool fits = !text.empty() && text.size() <= 9 && text[0] != '0' &&
                      std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!fits)
        refuse(fmt::format("--show {}: is no number of a process", text));
}

/// Returns the path as it is wherever the program goes. The file is made when the devices are.
std::string check_dump(const std::string& text)
{
    std::error_code error;
    const fs::path path = fs::absolute(text, error);
    if (text.empty() || error || fs::is_directory(path, error))
        refuse(fmt::format("--dump {}: names no file", text));
    const bool there = fs::exists(path, error);
    const fs::path written = there ? path : path.parent_path();
    if (::access(written.c_str(), W_OK) != 0)
        refuse(fmt::format("--dump {}: {}", text, std::strerror(errno)));
    return path.string();
}

command parse(int argc, const char* const* argv)
{
    const int program = find_program(argc, argv);
    command to{.what = command::action::start};
    bool help = false, version = false;
    CLI::App app;
    app.set_help_flag();
    CLI::Option* const wire = app.add_option("--wire", to.wire);
    CLI::Option* const port = app.add_option("--port", to.port);
    CLI::Option* const address = app.add_option("--address", to.address);
    CLI::Option* const devices = app.add_option("--devices", to.devices);
    CLI::Option* const dump = app.add_option("--dump", to.dump);
    CLI::Option* const loss = app.add_option("--loss", to.loss);
    CLI::Option* const show = app.add_option("--show", to.process);
    app.add_flag("-h,--help", help);
    app.add_flag("-V,--version", version);
    app.parse(program, argv);
    if (help || version)
        return say(0, help ? std::string(help_text()) : "weftio-run " WEFTIO_VERSION "\n");
    if (*show) {
        if (program != argc)
            refuse("--show and a program: one of them at a time");
        check_process(to.process);
        to.what = command::action::show;
        return to;
    }
    if (*wire && *port)
        refuse("--wire and --port: one of them at a time");
    if (*wire)
        check_wire(to.wire);
    if (*port && to.port.empty())
        refuse("--port: names no port; write it as iface:eth0");
    if (*address)
        check_address(to.address);
    if (*devices)
        check_devices(to.devices);
    if (*loss && *port)
        refuse("--loss and --port: only the wire in memory loses frames on purpose");
    if (*loss)
        check_loss(to.loss);
    if (*dump)
        to.dump = check_dump(to.dump);
    to.program.assign(argv + program, argv + argc);
    if (!to.program.empty() && to.program[0] == "--")
        to.program.erase(to.program.begin());
    if (to.program.empty())
        refuse("name the program to start");
    return to;
}

} // namespace

command parse_command_line(int argc, const char* const* argv)
try {
    return parse(argc, argv);
} catch (const CLI::Error& wrong) {
    return say(own_failure, fmt::format("weftio-run: {}\nRun with --help for usage.\n", wrong.what()));
}

} // namespace weftio::run
