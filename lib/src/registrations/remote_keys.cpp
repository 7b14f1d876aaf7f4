#include "registrations/remote_keys.hpp"

namespace weftio::registrations {

std::uint64_t remote_keys::hash_of(const range& bytes, access rights) noexcept
{
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15; // 2^64 / golden ratio
    std::uint64_t hash = (bytes.begin ^ static_cast<std::uint64_t>(rights) << 57) * odd;
    hash = (hash ^ hash >> 32 ^ bytes.bytes()) * odd;
    return hash ^ hash >> 29;
}

node* remote_keys::hold(const range& bytes, access rights) const noexcept
{
    const std::uint64_t hash = hash_of(bytes, rights);
    const table& at = *present_.load(std::memory_order_acquire); // pairs with the release in grow()
    // Acquire, pairs with the release in push().
    for (node* key = at.chains[hash & at.mask].load(std::memory_order_acquire); key;
         key = key->next.load(std::memory_order_acquire)) {
        if (key->hash.load(std::memory_order_relaxed) != hash || !key->hold())
            continue;
        if (key->bytes == bytes && key->rights == rights && key->rkey != 0)
            return key;
        key->give_back();
    }
    return nullptr;
}

node* remote_keys::find(const range& bytes, access rights) const noexcept
{
    const table& at = *tables_.back();
    for (node* key = at.chains[hash_of(bytes, rights) & at.mask].load(std::memory_order_relaxed); key;
         key = key->next.load(std::memory_order_relaxed))
        if (key->bytes == bytes && key->rights == rights)
            return key;
    return nullptr;
}

void remote_keys::prepare()
{
    if (count_ > newest().mask)
        grow(2 * (newest().mask + 1));
}

/// A reader of the smaller table may be led to a chain of the larger one, and then finds nothing: it asks again under
/// the lock.
void remote_keys::grow(std::size_t size)
{
    tables_.reserve(tables_.size() + 1);
    auto larger = std::make_unique<table>(size);
    if (!tables_.empty())
        for (auto& chain : newest().chains)
            for (node* at = chain.load(std::memory_order_relaxed); at;) {
                node* const next = at->next.load(std::memory_order_relaxed);
                push(*larger, *at);
                at = next;
            }
    tables_.push_back(std::move(larger));
    present_.store(tables_.back().get(), std::memory_order_release);
}

void remote_keys::push(table& into, node& key) noexcept
{
    std::atomic<node*>& chain = into.chains[key.hash.load(std::memory_order_relaxed) & into.mask];
    key.next.store(chain.load(std::memory_order_relaxed), std::memory_order_release);
    chain.store(&key, std::memory_order_release);
}

void remote_keys::add(node& key) noexcept
{
    key.hash.store(hash_of(key.bytes, key.rights), std::memory_order_relaxed);
    push(newest(), key);
    ++count_;
}

void remote_keys::remove(node& key) noexcept
{
    std::atomic<node*>* link = &newest().chains[key.hash.load(std::memory_order_relaxed) & newest().mask];
    for (node* at = link->load(std::memory_order_relaxed); at; at = link->load(std::memory_order_relaxed)) {
        if (at == &key) {
            link->store(key.next.load(std::memory_order_relaxed), std::memory_order_release);
            --count_;
            return;
        }
        link = &at->next;
    }
}

} // namespace weftio::registrations
