#include "reader/capture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reader/fields.hpp"

namespace weftio::replay {

namespace {

constexpr std::uint32_t section_header_type = 0x0a0d0d0a;

/// A file that is neither pcap nor pcapng.
class unknown_reader final : public capture_reader {
 public:
    explicit unknown_reader(input from) : capture_reader(std::move(from)) { diagnose(); }
    bool next(frame&) override { return false; }
    bool rewind() override { return in_.rewind(); }
    const char* format() const noexcept override { return "unknown"; }

 private:
    void diagnose()
    {
        auto head = in_.peek(4);
        if (!in_.failure().empty())
            fail(0, in_.failure());
        else if (head.empty())
            fail(0, "the file is empty");
        else if (head.size() < 4)
            fail(0, fmt::format("the file has {} bytes, too few for a header", head.size()));
        else
            fail(0, fmt::format("neither pcap nor pcapng (it starts with {:08x})",
                                weftio::replay::fields(head, true).u32(0)));
    }
};

} // namespace

void capture_reader::remove_fcs(frame& from, std::uint32_t fcs_bytes) noexcept
{
    std::uint32_t on_wire = std::max(from.captured_bytes, from.original_bytes);
    std::uint32_t data = on_wire - std::min(fcs_bytes, on_wire);
    from.fcs_bytes = fcs_bytes;
    from.fcs_captured = from.captured_bytes - std::min(from.captured_bytes, data);
    from.captured_bytes -= from.fcs_captured;
    from.original_bytes -= std::min(fcs_bytes, from.original_bytes);
    if (!from.bytes.empty())
        from.bytes = from.bytes.first(from.captured_bytes);
}

bool capture_reader::fail(std::uint64_t offset, std::string reason)
{
    damage_ = damage{offset, std::move(reason)};
    return false;
}

bool capture_reader::fail_truncated(std::uint64_t offset, const char* what, std::uint64_t wanted, std::uint64_t got)
{
    if (!in_.failure().empty())
        return fail(offset, in_.failure());
    return fail(offset, fmt::format("the file ends inside {}: {} of {} bytes", what, got, wanted));
}

std::unique_ptr<capture_reader> make_reader(input from)
{
    auto head = from.peek(4);
    if (head.size() == 4) {
        if (fields(head, false).u32(0) == section_header_type)
            return make_pcapng_reader(std::move(from));
        for (bool swapped : {false, true})
            switch (fields(head, swapped).u32(0)) {
                case 0xa1b2c3d4: // microseconds
                case 0xa1b23c4d: // nanoseconds
                case 0xa1b2cd34: // longer record headers
                    return make_pcap_reader(std::move(from));
                default: break;
            }
    }
    return std::make_unique<unknown_reader>(std::move(from));
}

std::unique_ptr<capture_reader> open_capture(const std::string& path, const std::atomic<bool>* stop)
{
    return make_reader(input(open_source(path, stop)));
}

} // namespace weftio::replay
