#include "nic/soft/work/doorbell_pages.hpp"

namespace weftio::nic::soft {

namespace {

/// The words in the order in which they get users: the first of every second line, because the CPU fetches lines in
/// pairs, then the first of the other lines, then the second ones, and so on.
constexpr std::uint32_t word_in_order(std::uint32_t rank) noexcept
{
    const std::uint32_t line = rank % doorbell_page::lines, half = doorbell_page::lines / 2;
    return (line % half * 2 + line / half) * doorbell_page::words_of_a_line + rank / doorbell_page::lines;
}

} // namespace

doorbell_page::doorbell_page(const std::shared_ptr<devices::device_backend>& device) : memory_(device)
{
    memory_.at = device->allocate(bytes, bytes, memory_.kind);
    memory_.bytes = bytes;
}

std::uint32_t doorbell_page::join() noexcept
{
    const std::scoped_lock one_at_a_time(joining_);
    std::uint32_t best = words, fewest = most_users;
    for (std::uint32_t rank = 0; rank < words && fewest != 0; ++rank)
        if (const std::uint32_t word = word_in_order(rank); users_[word] < fewest) {
            best = word;
            fewest = users_[word];
        }
    if (best != words)
        ++users_[best];
    return best;
}

void doorbell_page::leave(std::uint32_t word) noexcept
{
    const std::scoped_lock one_at_a_time(joining_);
    --users_[word];
}

std::shared_ptr<const doorbell> doorbell_pages::take(const std::shared_ptr<devices::device_backend>& device)
{
    const std::scoped_lock one_at_a_time(taking_);
    std::erase_if(pages_, [](const auto& each) { return each.expired(); });
    for (const auto& each : pages_)
        if (auto page = each.lock(); page && page->memory().owner == device)
            if (const std::uint32_t word = page->join(); word != doorbell_page::words)
                return std::make_shared<const doorbell>(std::move(page), word);
    auto page = std::make_shared<doorbell_page>(device);
    pages_.push_back(page);
    const std::uint32_t word = page->join();
    return std::make_shared<const doorbell>(std::move(page), word);
}

} // namespace weftio::nic::soft
