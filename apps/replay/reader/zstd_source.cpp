#include <zstd.h>

#include <fmt/format.h>

#include <array>
#include <new>

#include "reader/byte_source.hpp"

namespace weftio::replay {

namespace {

class zstd_source final : public byte_source {
 public:
    explicit zstd_source(std::unique_ptr<byte_source> from)
        : from_(std::move(from)), stream_(::ZSTD_createDStream(), &::ZSTD_freeDStream)
    {
        if (!stream_)
            throw std::bad_alloc();
    }

    std::size_t read(std::byte* to, std::size_t bytes) override
    {
        ZSTD_outBuffer out{.dst = to, .size = bytes, .pos = 0};
        while (out.pos == 0 && failure_.empty() && refill()) {
            std::size_t result = ::ZSTD_decompressStream(stream_.get(), &out, &in_);
            if (::ZSTD_isError(result))
                failure_ = fmt::format("the zstd stream is damaged ({})", ::ZSTD_getErrorName(result));
            else
                in_frame_ = result != 0;
            more_output_ = out.pos == out.size;
        }
        return out.pos;
    }

    bool rewind() override
    {
        if (!from_->rewind())
            return false;
        ::ZSTD_initDStream(stream_.get());
        in_ = {};
        in_frame_ = more_output_ = false;
        failure_.clear();
        return true;
    }

    std::optional<double> share() const override { return from_->share(); }

 private:
    bool refill()
    {
        if (in_.pos < in_.size)
            return true;
        if (more_output_ && in_frame_) { // the decompressor still holds output
            more_output_ = false;
            return true;
        }
        in_ = {.src = input_.data(), .size = from_->read(input_.data(), input_.size()), .pos = 0};
        if (in_.size == 0 && in_frame_)
            failure_ = from_->failure().empty() ? "the zstd stream ends too early" : from_->failure();
        return in_.size > 0;
    }

    std::unique_ptr<byte_source> from_;
    std::unique_ptr<ZSTD_DStream, decltype(&::ZSTD_freeDStream)> stream_;
    ZSTD_inBuffer in_{};
    std::array<std::byte, 65536> input_{};
    bool in_frame_ = false, more_output_ = false;
};

} // namespace

std::unique_ptr<byte_source> make_zstd_source(std::unique_ptr<byte_source> from)
{
    return std::make_unique<zstd_source>(std::move(from));
}

} // namespace weftio::replay
