#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include <CLI/CLI.hpp>

#include "kernel/settings.h"
#include "weftio/error.hpp"

namespace weftio::packets {

namespace {

/// Options as text; checked and converted to a command afterwards.
struct raw_options {
    std::string queues, http, echo, connections, interval, seconds, log, peer;
    std::vector<std::string> addresses;
    bool help = false, version = false;
};

command say(int exit_code, std::string text)
{
    return {.what = command::action::say, .text = std::move(text), .exit_code = exit_code};
}

[[noreturn]] void refuse(const std::string& why)
{
    throw std::invalid_argument(why);
}

/// The number of `option`; `otherwise` when the option was not given.
std::uint32_t number_of(std::string_view option, const std::string& text, std::uint32_t otherwise, std::uint32_t least,
                        std::uint32_t most)
{
    if (text.empty())
        return otherwise;
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
        refuse(fmt::format("{} {}: not a number from {} to {}", option, text, least, most));
    return value;
}

double seconds_of(std::string_view option, const std::string& text, double otherwise, double least)
{
    if (text.empty())
        return otherwise;
    double value = 0;
    if (!CLI::detail::lexical_cast(text, value) || !std::isfinite(value) || value < least || value > 1e8)
        refuse(fmt::format("{} {}: not a number of seconds from {} to 100000000", option, text, least));
    return value;
}

void take_addresses(const raw_options& from, command& to)
{
    if (from.addresses.empty())
        refuse("name an address of the port, for example --address 10.9.0.1/24");
    if (from.addresses.size() >= PACKETS_ADDRESSES) // one more is the link-local one
        refuse(fmt::format("{} times --address; a port has at most {}", from.addresses.size(), PACKETS_ADDRESSES - 1));
    for (const std::string& text : from.addresses) {
        const address found = parse_address(text);
        if (std::ranges::count(to.server.addresses, found) != 0)
            refuse(fmt::format("--address {}: given twice", text));
        to.server.addresses.push_back(found);
    }
    if (from.peer.empty())
        return;
    if (!to.server.port.starts_with("tap:"))
        refuse(fmt::format("--peer {}: needs -n tap:NAME, whose interface gets the address", from.peer));
    to.peer = parse_address(from.peer);
    const auto is_version = [&](const address& own) { return own.version == to.peer->version; };
    const auto own = std::ranges::find_if(to.server.addresses, is_version);
    if (own == to.server.addresses.end())
        refuse(fmt::format("--peer {}: needs an --address of IPv{}", from.peer, to.peer->version));
    if (std::ranges::none_of(to.server.addresses, [&](const address& each) { return has_in_network(each, *to.peer); }))
        refuse(fmt::format("--peer {}: is not in the network of {}; give an address of that network", from.peer,
                           with_prefix(*own)));
    if (own->bytes == to.peer->bytes)
        refuse(fmt::format("--peer {}: is the address of the port itself; give the peer another one", from.peer));
    if (from.peer.find('/') == from.peer.npos)
        to.peer->prefix = own->prefix;
}

void take_numbers(const raw_options& from, command& to)
{
    server_options& server = to.server;
    server.queues = number_of("--queues", from.queues, 1, 1, 16);
    server.http_port = static_cast<std::uint16_t>(number_of("--http", from.http, 80, 0, 65'535));
    server.echo_port = static_cast<std::uint16_t>(number_of("--echo", from.echo, 0, 0, 65'535));
    server.connections = number_of("--connections", from.connections, 65'536, 1, 1u << 20);
    server.interval_s = seconds_of("--interval", from.interval, 1, 0.01);
    to.seconds = seconds_of("--seconds", from.seconds, 0, 0);
}

command parse(int argc, const char* const* argv)
{
    command to;
    raw_options from;
    CLI::App app;
    app.set_help_flag();
    CLI::Option* const port = app.add_option("-n,--port", to.server.port);
    app.add_option("--address", from.addresses)->allow_extra_args(false);
    app.add_option("--peer", from.peer);
    app.add_option("-g,--device", to.server.device);
    app.add_option("-q,--queues", from.queues);
    app.add_option("--http", from.http);
    app.add_option("--root", to.server.root);
    app.add_option("--connections", from.connections);
    app.add_option("--echo", from.echo);
    app.add_flag("--ping-report", to.server.ping_report);
    app.add_flag("--busy", to.server.busy);
    app.add_option("--interval", from.interval);
    app.add_option("--seconds", from.seconds);
    app.add_option("--json", to.json);
    app.add_flag("--quiet", to.quiet);
    app.add_option("--log", from.log);
    app.add_flag("-h,--help", from.help);
    app.add_flag("-V,--version", from.version);
    app.parse(argc, argv);
    if (from.help || from.version)
        return say(ended, from.help ? std::string(help_text()) : "weftio-packets " WEFTIO_VERSION "\n");
    if (!*port || to.server.port.empty())
        refuse("name a port, for example -n tap:w0");
    take_addresses(from, to);
    take_numbers(from, to);
    if (!from.log.empty())
        to.log = log_level_named(from.log);
    return to;
}

} // namespace

command parse_command_line(int argc, const char* const* argv)
try {
    return parse(argc, argv);
} catch (const CLI::Error& wrong) {
    return say(usage, fmt::format("weftio-packets: {}\nRun with --help for usage.\n", wrong.what()));
} catch (const std::invalid_argument& wrong) {
    return say(usage, fmt::format("weftio-packets: {}\nRun with --help for usage.\n", wrong.what()));
} catch (const error& wrong) { // a level of the log that there is not
    return say(usage, fmt::format("weftio-packets: --log: {}\n", wrong.what()));
}

} // namespace weftio::packets
