#include <zlib.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>

#include "reader/byte_source.hpp"

namespace weftio::replay {

namespace {

class gzip_source final : public byte_source {
 public:
    explicit gzip_source(std::unique_ptr<byte_source> from) : from_(std::move(from))
    {
        if (::inflateInit2(&stream_, gzip_only) != Z_OK)
            throw std::bad_alloc();
    }
    gzip_source(const gzip_source&) = delete;
    gzip_source& operator=(const gzip_source&) = delete;
    ~gzip_source() override { ::inflateEnd(&stream_); }

    std::size_t read(std::byte* to, std::size_t bytes) override
    {
        auto room = static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
        stream_.next_out = reinterpret_cast<Bytef*>(to);
        stream_.avail_out = room;
        while (stream_.avail_out == room && failure_.empty() && refill()) {
            in_member_ = true;
            int result = ::inflate(&stream_, Z_NO_FLUSH);
            if (result == Z_STREAM_END) { // another member may follow
                in_member_ = false;
                ::inflateReset(&stream_);
            } else if (result != Z_OK && result != Z_BUF_ERROR) {
                failure_ = fmt::format("the gzip stream is damaged ({})", stream_.msg ? stream_.msg : "inflate failed");
            }
        }
        return room - stream_.avail_out;
    }

    bool rewind() override
    {
        if (!from_->rewind() || ::inflateReset(&stream_) != Z_OK)
            return false;
        stream_.avail_in = 0;
        in_member_ = false;
        failure_.clear();
        return true;
    }

    std::optional<double> share() const override { return from_->share(); }

 private:
    static constexpr int gzip_only = 15 + 16; ///< largest window, gzip header

    bool refill()
    {
        if (stream_.avail_in > 0)
            return true;
        stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
        stream_.avail_in = static_cast<uInt>(from_->read(input_.data(), input_.size()));
        if (stream_.avail_in == 0 && in_member_)
            failure_ = from_->failure().empty() ? "the gzip stream ends too early" : from_->failure();
        return stream_.avail_in > 0;
    }

    std::unique_ptr<byte_source> from_;
    z_stream stream_{};
    std::array<std::byte, 65536> input_{};
    bool in_member_ = false;
};

} // namespace

std::unique_ptr<byte_source> make_gzip_source(std::unique_ptr<byte_source> from)
{
    return std::make_unique<gzip_source>(std::move(from));
}

} // namespace weftio::replay
