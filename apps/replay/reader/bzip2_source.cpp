#include <bzlib.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>

#include "reader/byte_source.hpp"

namespace weftio::replay {

namespace {

class bzip2_source final : public byte_source {
 public:
    explicit bzip2_source(std::unique_ptr<byte_source> from) : from_(std::move(from)) { start(); }
    bzip2_source(const bzip2_source&) = delete;
    bzip2_source& operator=(const bzip2_source&) = delete;
    ~bzip2_source() override { ::BZ2_bzDecompressEnd(&stream_); }

    std::size_t read(std::byte* to, std::size_t bytes) override
    {
        auto room = static_cast<unsigned>(std::min<std::size_t>(bytes, std::numeric_limits<unsigned>::max()));
        stream_.next_out = reinterpret_cast<char*>(to);
        stream_.avail_out = room;
        while (stream_.avail_out == room && failure_.empty() && refill()) {
            in_stream_ = true;
            int result = ::BZ2_bzDecompress(&stream_);
            more_output_ = stream_.avail_out == 0;
            if (result == BZ_STREAM_END)
                restart(); // another stream may follow
            else if (result != BZ_OK)
                failure_ = fmt::format("the bzip2 stream is damaged (BZ2_bzDecompress returned {})", result);
        }
        return room - stream_.avail_out;
    }

    bool rewind() override
    {
        if (!from_->rewind())
            return false;
        restart();
        stream_.avail_in = 0;
        failure_.clear();
        return true;
    }

    std::optional<double> share() const override { return from_->share(); }

 private:
    void start()
    {
        if (::BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK)
            throw std::bad_alloc();
    }

    /// Restarts the decompressor without moving its input and output pointers.
    void restart()
    {
        ::BZ2_bzDecompressEnd(&stream_);
        start();
        in_stream_ = more_output_ = false;
    }

    bool refill()
    {
        if (stream_.avail_in > 0)
            return true;
        if (in_stream_ && more_output_) { // the decompressor still holds output
            more_output_ = false;
            return true;
        }
        stream_.next_in = reinterpret_cast<char*>(input_.data());
        stream_.avail_in = static_cast<unsigned>(from_->read(input_.data(), input_.size()));
        if (stream_.avail_in == 0 && in_stream_)
            failure_ = from_->failure().empty() ? "the bzip2 stream ends too early" : from_->failure();
        return stream_.avail_in > 0;
    }

    std::unique_ptr<byte_source> from_;
    bz_stream stream_{};
    std::array<std::byte, 65536> input_{};
    bool in_stream_ = false, more_output_ = false;
};

} // namespace

std::unique_ptr<byte_source> make_bzip2_source(std::unique_ptr<byte_source> from)
{
    return std::make_unique<bzip2_source>(std::move(from));
}

} // namespace weftio::replay
