#include "send/filter.hpp"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include "send/link_type.hpp"

namespace weftio::replay {

struct frame_filter::program {
    bpf_program code{};
    ~program() { ::pcap_freecode(&code); }
};

namespace {

/// libpcap uses other numbers in memory than in files for three link types.
int number_in_memory(std::uint32_t type)
{
    switch (static_cast<link_type>(type)) {
        case link_type::raw:
        case link_type::raw_openbsd: return DLT_RAW;
        case link_type::openbsd_loopback: return DLT_LOOP;
        default: return static_cast<int>(type);
    }
}

} // namespace

frame_filter::frame_filter(std::string expression) : expression_(std::move(expression))
{
    std::string error;
    if (!expression_.empty() && !(programs_[link_type_ethernet] = compile(link_type_ethernet, error)))
        throw open_error(fmt::format("weftio-replay: --filter \"{}\": {}; see man pcap-filter", expression_, error));
}

frame_filter::~frame_filter() = default;

std::unique_ptr<frame_filter::program> frame_filter::compile(std::uint32_t link_type, std::string& error) const
{
    std::unique_ptr<pcap_t, decltype(&::pcap_close)> handle(
        ::pcap_open_dead(number_in_memory(link_type), static_cast<int>(longest_frame)), &::pcap_close);
    auto made = std::make_unique<program>();
    if (handle && ::pcap_compile(handle.get(), &made->code, expression_.c_str(), 1, PCAP_NETMASK_UNKNOWN) == 0)
        return made;
    error = handle ? ::pcap_geterr(handle.get()) : "out of memory";
    return nullptr;
}

bool frame_filter::passes(const frame& captured)
{
    if (expression_.empty())
        return true;
    auto found = programs_.find(captured.link_type);
    if (found == programs_.end()) {
        std::string error;
        found = programs_.emplace(captured.link_type, compile(captured.link_type, error)).first;
    }
    pcap_pkthdr header{
        .ts = {}, .caplen = static_cast<bpf_u_int32>(captured.bytes.size()), .len = captured.original_bytes};
    const auto* bytes = reinterpret_cast<const unsigned char*>(captured.bytes.data());
    return found->second && ::pcap_offline_filter(&found->second->code, &header, bytes) != 0;
}

} // namespace weftio::replay
