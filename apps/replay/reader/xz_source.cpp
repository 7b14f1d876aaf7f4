#include <lzma.h>

#include <fmt/format.h>

#include <array>
#include <new>

#include "reader/byte_source.hpp"

namespace weftio::replay {

namespace {

class xz_source final : public byte_source {
 public:
    explicit xz_source(std::unique_ptr<byte_source> from) : from_(std::move(from)) { start(); }
    xz_source(const xz_source&) = delete;
    xz_source& operator=(const xz_source&) = delete;
    ~xz_source() override { ::lzma_end(&stream_); }

    std::size_t read(std::byte* to, std::size_t bytes) override
    {
        stream_.next_out = reinterpret_cast<std::uint8_t*>(to);
        stream_.avail_out = bytes;
        while (stream_.avail_out == bytes && failure_.empty() && !at_end_) {
            refill();
            lzma_ret result = ::lzma_code(&stream_, input_ended_ ? LZMA_FINISH : LZMA_RUN);
            at_end_ = result == LZMA_STREAM_END;
            if (result != LZMA_OK && !at_end_)
                failure_ = reason_of(result);
        }
        return bytes - stream_.avail_out;
    }

    bool rewind() override
    {
        if (!from_->rewind())
            return false;
        start();
        failure_.clear();
        return true;
    }

    std::optional<double> share() const override { return from_->share(); }

 private:
    static constexpr std::uint64_t most_memory_bytes = 256u << 20; ///< xz -9 takes 65 MiB

    void start()
    {
        if (::lzma_stream_decoder(&stream_, most_memory_bytes, LZMA_CONCATENATED) != LZMA_OK)
            throw std::bad_alloc();
        stream_.avail_in = 0;
        input_ended_ = at_end_ = false;
    }

    void refill()
    {
        if (stream_.avail_in > 0 || input_ended_)
            return;
        stream_.next_in = reinterpret_cast<const std::uint8_t*>(input_.data());
        stream_.avail_in = from_->read(input_.data(), input_.size());
        input_ended_ = stream_.avail_in == 0;
    }

    std::string reason_of(lzma_ret result) const
    {
        if (result == LZMA_BUF_ERROR)
            return from_->failure().empty() ? "the xz stream ends too early" : from_->failure();
        if (result == LZMA_MEMLIMIT_ERROR)
            return fmt::format("the xz stream needs more than {} MiB to decompress; use xz -dc FILE | weftio-replay -",
                               most_memory_bytes >> 20);
        return fmt::format("the xz stream is damaged (lzma_code returned {})", static_cast<int>(result));
    }

    std::unique_ptr<byte_source> from_;
    lzma_stream stream_ = LZMA_STREAM_INIT;
    std::array<std::byte, 65536> input_{};
    bool input_ended_ = false, at_end_ = false;
};

} // namespace

std::unique_ptr<byte_source> make_xz_source(std::unique_ptr<byte_source> from)
{
    return std::make_unique<xz_source>(std::move(from));
}

} // namespace weftio::replay
