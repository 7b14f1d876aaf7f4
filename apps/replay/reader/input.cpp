#include "reader/input.hpp"

#include <algorithm>
#include <cstring>

namespace weftio::replay {

namespace {
constexpr std::size_t window_bytes = 256 * 1024;
}

input::input(std::unique_ptr<byte_source> source) : source_(std::move(source)), window_(window_bytes) {}

std::span<const std::byte> input::peek(std::size_t bytes)
{
    if (end_ - begin_ < bytes) {
        make_room(bytes);
        while (end_ - begin_ < bytes) {
            std::size_t count = source_->read(window_.data() + end_, window_.size() - end_);
            if (count == 0)
                break;
            end_ += count;
        }
    }
    return {window_.data() + begin_, std::min(bytes, end_ - begin_)};
}

void input::make_room(std::size_t bytes)
{
    if (window_.size() - begin_ >= bytes)
        return;
    std::memmove(window_.data(), window_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (window_.size() < bytes)
        window_.resize(bytes);
}

void input::consume(std::size_t bytes) noexcept
{
    begin_ += bytes;
    offset_ += bytes;
}

std::uint64_t input::skip(std::uint64_t bytes)
{
    std::uint64_t left = bytes;
    while (left > 0) {
        if (begin_ == end_) {
            begin_ = end_ = 0;
            if (left > window_.size()) {
                std::uint64_t sought = source_->skip(left);
                offset_ += sought;
                left -= sought;
            }
            if (left > 0 && peek(1).empty())
                break;
        }
        auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left, end_ - begin_));
        consume(count);
        left -= count;
    }
    return bytes - left;
}

bool input::rewind()
{
    if (!source_->rewind())
        return false;
    begin_ = end_ = 0;
    offset_ = 0;
    return true;
}

} // namespace weftio::replay
