#include "settings.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "weftio/error.hpp"

namespace weftio::verbs {

namespace {

std::string value_of(const char* variable)
{
    const char* const value = std::getenv(variable);
    return value ? value : "";
}

unsigned devices_of(const std::string& text)
{
    unsigned count = 1;
    const char* const end = text.data() + text.size();
    if (text.empty())
        return count;
    if (const auto [behind, why] = std::from_chars(text.data(), end, count);
        why != std::errc() || behind != end || count == 0 || count > most_devices)
        throw error(errc::invalid_argument,
                    fmt::format("weftio-run: --devices is {}; set 1 to {}", text, most_devices));
    return count;
}

unsigned doorbell_bytes_of(const std::string& text)
{
    if (text.empty() || text == "8" || text == "64")
        return text == "64" ? 64 : 8;
    throw error(errc::invalid_argument, fmt::format("weftio-run: {} is {}; set 8 or 64", doorbell_variable, text));
}

stale_mode stale_of(const std::string& text)
{
    if (text.empty() || text == "report")
        return stale_mode::report;
    if (text == "fail" || text == "off")
        return text == "fail" ? stale_mode::fail : stale_mode::off;
    throw error(errc::invalid_argument, fmt::format("weftio-run: --stale is {}; set report, fail or off", text));
}

/// The part of a wire's spec for "SHARE" or "SHARE,SEED".
std::string loss_words(const std::string& loss)
{
    if (loss.empty())
        return {};
    const std::size_t comma = loss.find(',');
    return ",loss=" + loss.substr(0, comma) + (comma == loss.npos ? "" : ",seed=" + loss.substr(comma + 1));
}

} // namespace

settings settings::from_environment()
{
    settings wanted;
    wanted.port = value_of(port_variable);
    const std::string wire = value_of(wire_variable);
    if (wanted.port.empty())
        wanted.port = "wire:" + (wire.empty() ? "default" : wire) + loss_words(value_of(loss_variable));
    wanted.address = value_of(address_variable);
    wanted.devices = devices_of(value_of(devices_variable));
    wanted.doorbell_bytes = doorbell_bytes_of(value_of(doorbell_variable));
    wanted.dump = value_of(dump_variable);
    wanted.stale = stale_of(value_of(stale_variable));
    wanted.stale_asked_for = !value_of(stale_variable).empty();
    return wanted;
}

} // namespace weftio::verbs
