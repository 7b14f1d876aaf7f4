// Any text as a configuration of file engines: it is a configuration, or is refused with sentences that name a line.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

#include "expect.hpp"
#include "storage/configuration.hpp"
#include "weftio/error.hpp"

namespace weftio::fuzz {

namespace {

/// "weftio: NAME:LINE: ..." for each line of `text`.
void expect_sentences(std::string_view text, std::string_view name, std::size_t lines)
{
    const std::string prefix = "weftio: " + std::string(name) + ":";
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view sentence = text.substr(at, end - at);
        expect(sentence.substr(0, prefix.size()) == prefix, "a sentence names the file");
        const unsigned long line = std::strtoul(std::string(sentence.substr(prefix.size())).c_str(), nullptr, 10);
        expect(line >= 1 && line <= lines, "a sentence names a line of the file");
        expect(std::none_of(sentence.begin(), sentence.end(),
                            [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }),
               "a sentence steers no terminal");
        at = end + 1;
    }
}

/// What holds for every configuration, whatever the text.
void expect_in_order(const storage::configuration& made)
{
    expect(made.statistics_level <= 3 && made.io_threads <= 256 && made.io_depth >= 1 && made.io_depth <= 4096,
           "numbers are within their limits");
    expect(made.slab_bytes.size() == made.slab_counts.size(), "each slab has a count");
    expect(!made.routing_order.empty() && made.routing_order.size() <= 4, "there is an order of policies");
    expect(std::set(made.routing_order.begin(), made.routing_order.end()).size() == made.routing_order.size(),
           "a policy is there once");
    for (const auto& [name, settings] : made.file_systems) {
        expect(settings.rdma_addresses.empty() || settings.mounts.empty(), "no list stands beside a mount table");
        expect(made.addresses_of(name, "/nowhere") ==
                   (settings.rdma_addresses.empty() ? made.rdma_addresses : settings.rdma_addresses),
               "a mount without a row has the addresses of its file system, or those of all");
        (void)made.posix_at_most(name);
        (void)made.denies(name, "/");
    }
}

} // namespace

} // namespace weftio::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    using namespace weftio;
    const std::string_view text(reinterpret_cast<const char*>(data), bytes);
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    try {
        const storage::configuration made = storage::parse_configuration(text, "a.json");
        fuzz::expect_in_order(made);
        for (const storage::configuration::remark& each : made.remarks)
            fuzz::expect_sentences(each.text, "a.json", lines);
    } catch (const error& refused) {
        fuzz::expect(refused.code() == errc::invalid_argument, "a text is refused as invalid");
        fuzz::expect_sentences(refused.what(), "a.json", lines);
    }
    return 0;
}
