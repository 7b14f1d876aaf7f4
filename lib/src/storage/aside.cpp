// Two ways as one: what the first does not take goes aside.
#include <algorithm>
#include <utility>

#include "storage/way.hpp"

namespace weftio::storage {

namespace {

class way_with_aside final : public way {
 public:
    way_with_aside(std::unique_ptr<way> first, std::unique_ptr<way> aside)
        : first_(std::move(first)), aside_(std::move(aside))
    {}

    bool submit(const io& io) override { return (io.vendor || io.by_threads ? aside_ : first_)->submit(io); }
    void flush() override
    {
        first_->flush();
        aside_->flush();
    }
    std::size_t reap(std::span<io_done> done) override
    {
        const std::size_t count = first_->reap(done);
        return aside_->in_flight() == 0 ? count : count + aside_->reap(done.subspan(count));
    }
    std::size_t in_flight() const noexcept override { return first_->in_flight() + aside_->in_flight(); }
    void wait(std::chrono::nanoseconds timeout) override
    {
        flush();
        constexpr std::chrono::nanoseconds brief = std::chrono::microseconds(100);
        if (aside_->in_flight() == 0)
            first_->wait(timeout);
        else // the other way wakes nobody here
            aside_->wait(first_->in_flight() == 0 ? timeout : std::min(timeout, brief));
    }
    void cancel(std::uint64_t tag) override
    {
        first_->cancel(tag);
        if (aside_->in_flight() != 0)
            aside_->cancel(tag);
    }
    file_way name() const noexcept override { return first_->name(); }

 private:
    std::unique_ptr<way> first_, aside_;
};

} // namespace

std::unique_ptr<way> make_with_aside(std::unique_ptr<way> first, std::unique_ptr<way> aside)
{
    return std::make_unique<way_with_aside>(std::move(first), std::move(aside));
}

} // namespace weftio::storage
