// Words that people type: specs of ports and devices, the command line of weftio-replay, requests to telemetry.
//
// The first byte says which. Nothing real opens: the system's answers come from the input (fake_system.hpp), devices
// are stand-ins that note what they were opened as. Every text is taken or refused with one clear sentence; nothing
// else may happen.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rte_telemetry.h>

#include "devices/backend.hpp"
#include "dpdk/port_spec.hpp"
#include "expect.hpp"
#include "fake_system.hpp"
#include "options.hpp"
#include "software_nic.hpp"
#include "weftio/error.hpp"
#include "weftio/port.hpp"

namespace weftio::fuzz {

namespace {

using text = std::string_view;

/// Calls, and expects what it throws to be a weftio::error that begins with `subject`. Returns whether it threw none.
template <class Call>
bool taken(text subject, Call&& call)
{
    try {
        call();
        return true;
    } catch (const error& refused) {
        const text words = refused.what();
        expect(words.starts_with(subject) && words.size() > subject.size() + 10,
               "a refusal says what is refused and why");
        expect(refused.code() == errc::invalid_argument || refused.code() == errc::not_found ||
                   refused.code() == errc::permission_denied || refused.code() == errc::not_supported ||
                   refused.code() == errc::in_use,
               "a refusal has one of the codes that are documented");
        return false;
    }
}

/// Up to the first 0xff is the spec; then what the system answers, and what its files hold.
void open_port(text input)
{
    const text spec = input.substr(0, input.find('\xff'));
    input.remove_prefix(std::min(input.size(), spec.size() + 1));
    const std::uint8_t answers = input.empty() ? std::uint8_t{0xff} : static_cast<std::uint8_t>(input[0]);
    input.remove_prefix(std::min<std::size_t>(input.size(), 1));
    const fake_system system(answers, reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    dpdk::port_spec parsed;
    if (!taken("weftio: port", [&] { parsed = dpdk::parse_port_spec(spec); }))
        return;
    expect(!parsed.candidates.empty() && parsed.candidates.size() <= 2, "a spec that is taken names a device");
    const bool devargs = spec.find(':') == text::npos || parsed.candidates[0].pci || spec.find(',') < spec.find(':');
    for (const dpdk::port_candidate& candidate : parsed.candidates) {
        expect(!candidate.device.empty(), "a device has a name");
        const bool own_words = !spec.starts_with("pcap:") && !spec.starts_with("iface:") && !spec.starts_with("tap:");
        const auto words = std::ranges::count(candidate.arguments, '=');
        expect(own_words || devargs || words <= 4, "a name or a path adds no argument");
        expect(own_words || words == std::ranges::count(candidate.arguments, ',') + 1, "a name or a path adds no word");
        expect((candidate.device + candidate.arguments).find('\0') == std::string::npos, "no argument ends early");
    }
    expect(parsed.interface.size() < IFNAMSIZ, "an interface's name is as long as Linux allows");
}

// devices

struct {
    std::string kind;
    int number = 0;
} opened;

class stand_in final : public devices::device_backend {
 public:
    const std::string& name() const noexcept override { return opened.kind; }
    allocation allocate(std::size_t, std::size_t, memory_kind) override { return {}; }
    void release(const allocation&, memory_kind) noexcept override {}
    std::shared_ptr<devices::running_backend> launch(const devices::launch_request&,
                                                     std::shared_ptr<device_backend>) override
    {
        return nullptr;
    }
    const weftio_dev_clock* clock() const noexcept override { return nullptr; }
};

std::shared_ptr<devices::device_backend> note(const char* kind, int number)
{
    opened = {kind, number};
    return std::make_shared<stand_in>();
}

void open_device(text spec)
{
    opened = {};
    if (!taken("weftio: device", [&] { device::open(spec); })) {
        expect(opened.kind.empty(), "what is refused is not opened");
        return;
    }
    const auto colon = std::min(spec.find(':'), spec.size());
    const bool pci = opened.kind == "cuda" && opened.number < 0;
    expect(pci || spec.substr(0, colon) == opened.kind, "the device of that name opens");
    if (pci)
        expect((spec.size() == 7 || spec.size() == 12) && std::ranges::count(spec, ':') == (spec.size() == 7 ? 1 : 2),
               "a PCI address is one");
    else if (colon != spec.size())
        expect(opened.number >= 0 &&
                   std::stoul(std::string(spec.substr(colon + 1))) == static_cast<unsigned>(opened.number),
               "the number is the spec's");
    else
        expect(opened.kind == "cpu" || (opened.kind == "opencl" && opened.number < 0),
               "without a number the first opens");
}

// command line

void parse_words(text input)
{
    std::vector<std::string> words{"weftio-replay"};
    for (std::size_t end = 0; end != text::npos && words.size() < 64;) {
        end = input.find('\n');
        words.emplace_back(input.substr(0, end));
        input.remove_prefix(end == text::npos ? input.size() : end + 1);
    }
    std::vector<const char*> argv;
    for (const std::string& word : words)
        argv.push_back(word.c_str());
    const replay::command made = replay::parse_command_line(static_cast<int>(argv.size()), argv.data());
    if (made.what == replay::command::action::say) {
        expect(!made.text.empty() && made.text.back() == '\n', "what is said ends a line");
        expect(made.exit_code == 0 || (made.exit_code == 1 && made.text.starts_with("weftio-replay: ")),
               "a mistake is named, with status 1");
        return;
    }
    expect(made.what == replay::command::action::check || !made.session.port.empty(), "a replay has a port");
    expect(!made.session.files.empty() && made.session.lanes >= 1 && made.session.lanes <= 1024, "a command is whole");
    expect(made.session.feed.timing.multiplier > 0, "time goes forward");
}

void parse_values(text input)
{
    constexpr std::uint64_t now_ns = 1'700'000'000'000'000'000, longest_ns = 9'000'000'001'000'000'000;
    if (auto duration_ns = replay::parse_duration(input))
        expect(*duration_ns <= longest_ns, "a duration is one that there is");
    if (auto time_ns = replay::parse_time(input, now_ns))
        expect(!input.starts_with('+') || *time_ns - now_ns <= longest_ns, "a time in so many seconds is ahead");
    if (auto vlan = replay::parse_vlan(input))
        expect(input.find_first_not_of("0123456789:") == text::npos, "a tag is two numbers");
    if (auto mac = replay::parse_mac(input))
        expect(input.find_first_not_of("0123456789abcdefABCDEF:-") == text::npos, "an address is digits");
    if (auto map = replay::parse_address_map(input))
        expect(map->from_bits <= map->bytes * 8 && map->to_bits <= map->bytes * 8,
               "a prefix is no longer than its address");
}

// telemetry

std::map<std::string, telemetry_cb>& commands()
{
    static std::map<std::string, telemetry_cb> all;
    return all;
}

void ask_telemetry(text input)
{
    static const port shown = port::open("null", {.mode = engine_mode::inline_worker});
    const std::string parameters(input.substr(0, std::min(input.find('\0'), input.size())));
    const std::string number = std::to_string(software_nic(shown).device().id());
    const bool names_it =
        parameters.ends_with(number) && parameters.find_first_not_of('0') >= parameters.size() - number.size();
    for (const auto& [name, answer] : commands()) {
        for (const char* asked : {parameters.c_str(), static_cast<const char*>(nullptr)}) {
            std::unique_ptr<rte_tel_data, void (*)(rte_tel_data*)> data(rte_tel_data_alloc(), rte_tel_data_free);
            const int result = answer(name.c_str(), asked, data.get());
            const bool of_the_process = name == "/weftio/ports" || name == "/weftio/kernel" ||
                                        name == "/weftio/semaphore" || name.starts_with("/weftio/file");
            const bool of_a_port = name != "/weftio/rdma_dump" && asked && names_it; // it has no queue pair
            expect(result == (of_the_process || of_a_port ? 0 : -1),
                   "telemetry answers for a port that there is, by its number");
        }
    }
}

} // namespace

} // namespace weftio::fuzz

std::shared_ptr<weftio::devices::device_backend> weftio::devices::open_cpu()
{
    return fuzz::note("cpu", 0);
}
std::shared_ptr<weftio::devices::device_backend> weftio::devices::open_opencl(int index)
{
    return fuzz::note("opencl", index);
}
std::shared_ptr<weftio::devices::device_backend> weftio::devices::open_cuda(std::string_view, int index)
{
    return fuzz::note("cuda", index);
}

// NOLINTBEGIN(bugprone-reserved-identifier): names that the linker makes
extern "C" int __real_rte_telemetry_register_cmd(const char*, telemetry_cb, const char*);
extern "C" int __wrap_rte_telemetry_register_cmd(const char* name, telemetry_cb answer, const char* help)
{
    weftio::fuzz::commands()[name] = answer;
    return __real_rte_telemetry_register_cmd(name, answer, help);
}
// NOLINTEND(bugprone-reserved-identifier)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    if (bytes == 0)
        return 0;
    const std::string_view words(reinterpret_cast<const char*>(data + 1), bytes - 1);
    switch (data[0] % 5) {
        case 0: weftio::fuzz::open_port(words); break;
        case 1: weftio::fuzz::open_device(words); break;
        case 2: weftio::fuzz::parse_words(words); break;
        case 3: weftio::fuzz::parse_values(words); break;
        default: weftio::fuzz::ask_telemetry(words);
    }
    return 0;
}
