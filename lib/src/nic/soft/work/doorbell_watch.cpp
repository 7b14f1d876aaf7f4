#include "nic/soft/work/doorbell_watch.hpp"

#include <algorithm>
#include <utility>

namespace weftio::nic::soft {

doorbell_watch::page* doorbell_watch::find(const page_word& word) const noexcept
{
    const auto found = std::ranges::find(pages_, word.page, [](const auto& each) { return each->words; });
    return found == pages_.end() ? nullptr : found->get();
}

void doorbell_watch::drop(const page& of, std::uint32_t line) noexcept
{
    const std::uint32_t at = of.where[line];
    lines_[at] = lines_.back();
    lines_.pop_back();
    if (at < lines_.size())
        lines_[at].of->where[number_of(lines_[at])] = at;
}

void doorbell_watch::reserve(std::uint32_t slot, const page_word& word)
{
    if (!word)
        return;
    if (slot >= links_.size())
        links_.resize(slot + std::size_t{1});
    if (find(word))
        return;
    std::erase_if(pages_, [](const auto& each) { return each->users == 0; }); // reserved, but nothing was added
    lines_.reserve((pages_.size() + 1) * doorbell_page::lines);
    auto made = std::make_unique<page>();
    made->words = word.page;
    made->first.fill(nobody);
    pages_.push_back(std::move(made));
}

void doorbell_watch::add(const page_word& word) noexcept
{
    if (word)
        ++find(word)->users;
}

void doorbell_watch::remove(const page_word& word) noexcept
{
    if (page* const of = find(word); of && --of->users == 0)
        std::erase_if(pages_, [&](const auto& each) { return each.get() == of; });
}

void doorbell_watch::watch(std::uint32_t slot, const page_word& word, const watched_word& record) noexcept
{
    page& of = *find(word);
    const std::uint32_t line = word.at / doorbell_page::words_of_a_line;
    std::uint32_t& first = of.first[word.at];
    if (first == nobody) // else others may have been rung
        take_ring(word.page[word.at]);
    else
        links_[first].before = slot;
    links_[slot] = {.record = record, .before = nobody, .next = first};
    first = slot;
    if (of.watched[line]++ != 0)
        return;
    of.where[line] = static_cast<std::uint32_t>(lines_.size());
    lines_.push_back({word.page + std::size_t{line} * doorbell_page::words_of_a_line, &of});
}

void doorbell_watch::unwatch(std::uint32_t slot, const page_word& word) noexcept
{
    page& of = *find(word);
    const std::uint32_t line = word.at / doorbell_page::words_of_a_line;
    const link was = std::exchange(links_[slot], {});
    if (was.before == nobody)
        of.first[word.at] = was.next;
    else
        links_[was.before].next = was.next;
    if (was.next != nobody)
        links_[was.next].before = was.before;
    if (--of.watched[line] == 0)
        drop(of, line);
}

} // namespace weftio::nic::soft
