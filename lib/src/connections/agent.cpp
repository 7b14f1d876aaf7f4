#include "connections/agent.hpp"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <random>

#include "core/signals.hpp"

namespace weftio::connections {

namespace {

constexpr std::uint64_t second = 1'000'000'000;

cm::settings settings_of(const port& port)
{
    constexpr std::size_t most_connections = 65536;
    // Late packets of a connection are not told from those of the next one with the same queue numbers while they may
    // arrive. Numbers are reused after all others.
    constexpr std::uint64_t packet_life = second / 50, time_wait = second / 5;
    std::random_device random;
    const std::array<std::uint8_t, 6> mac = port.mac();
    cm::settings made{.first_id = random(),
                      .transaction = random(),
                      .packet_life_ns = packet_life,
                      .time_wait_ns = time_wait,
                      .most_connections = most_connections};
    for (const std::uint8_t byte :
         {std::uint8_t(mac[0] ^ 2), mac[1], mac[2], std::uint8_t{0xff}, std::uint8_t{0xfe}, mac[3], mac[4], mac[5]})
        made.guid = made.guid << 8 | byte;
    return made;
}

} // namespace

agent::agent(const port& port, const rdma_device& at, std::function<void(const cm::event&)> told)
    : addresses_(detail::internals::share(at)), told_(std::move(told)), queue_(port, at, [this] { woken_.raise(); }),
      manager_(settings_of(port), *this),
      sees_leaving_(addresses_->gids.front().held->has_left(port.mac()).has_value()), resolver_(addresses_)
{
    const core::signals_blocked blocked;
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "weftio-cm");
}

agent::~agent()
{
    ending_ = true;
    woken_.raise();
    thread_.join();
}

std::optional<unsigned> agent::index_of(const net::roce_gid& local) const
{
    const auto& gids = addresses_->gids;
    const auto found = std::ranges::find(gids, local, [](const auto& each) { return each.own.address; });
    return found == gids.end() ? std::nullopt : std::optional(static_cast<unsigned>(found - gids.begin()));
}

bool agent::resolve(const cm::path& way, std::function<void(bool)> found, std::chrono::milliseconds patience)
{
    const std::optional<unsigned> index = index_of(way.local);
    auto told = [this, peer = way.peer, found = std::move(found)](std::optional<net::mac_address> mac) {
        if (mac) {
            const std::scoped_lock lock(mutex_);
            learn(peer, *mac);
        }
        found(mac.has_value());
    };
    return index && resolver_.ask({*index, way.peer, patience, std::move(told)});
}

/// A message to a host whose MAC was forgotten is lost, and will be sent again.
void agent::send(const cm::path& to, std::span<const std::uint8_t, cm::mad_bytes> bytes)
{
    const auto known = macs_.find(to.peer);
    if (known != macs_.end())
        queue_.send(to, known->second, bytes);
    else
        resolve(to, [](bool) {});
}

void agent::learn(const net::roce_gid& host, const net::mac_address& mac)
{
    constexpr std::size_t most_hosts = 16384;
    const auto [at, is_new] = macs_.try_emplace(host, mac);
    if (!is_new) {
        if (const net::mac_address before = std::exchange(at->second, mac); before != mac && has_left(before)) {
            manager_.lose(host, now()); // another process has its address by now
            woken_.raise();
        }
        return;
    }
    by_age_.push_back(host);
    if (by_age_.size() > most_hosts) {
        macs_.erase(by_age_.front());
        by_age_.pop_front();
    }
}

/// The NIC knows the MAC of a host that has just sent a datagram, unless hundreds of others have sent one since.
void agent::learn_from(const cm::path& datagram)
{
    if (const std::optional<unsigned> index = index_of(datagram.local))
        if (const auto mac = addresses_->gids[*index].held->known(datagram.peer))
            learn(datagram.peer, *mac);
}

std::uint64_t agent::now() noexcept
{
    timespec at{};
    clock_gettime(CLOCK_MONOTONIC, &at);
    return static_cast<std::uint64_t>(at.tv_sec) * second + static_cast<std::uint64_t>(at.tv_nsec);
}

void wake_up::wait(std::uint64_t until) noexcept
{
    const timespec end{.tv_sec = static_cast<time_t>(until / second), .tv_nsec = static_cast<long>(until % second)};
    if (until == 0)
        sem_wait(&raised_);
    else
        sem_clockwait(&raised_, CLOCK_MONOTONIC, &end);
    while (sem_trywait(&raised_) == 0) {
    }
}

std::optional<cm::event> agent::next_event()
{
    const std::scoped_lock lock(mutex_);
    return manager_.next_event();
}

bool agent::has_left(const net::mac_address& host) const
{
    return addresses_->gids.front().held->has_left(host).value_or(false);
}

bool agent::has_left(const net::roce_gid& host) const
{
    const auto known = macs_.find(host);
    return known != macs_.end() && has_left(known->second);
}

/// Ends the connections of hosts that have left the wire without a word. What such a host has sent last may be on its
/// way to here when it is first found to have left; at the next look it has arrived.
/// @return when to look again; 0: there is nobody to look after
std::uint64_t agent::look_after_peers(std::uint64_t time)
{
    constexpr std::uint64_t look_every = second / 10;
    if (!sees_leaving_ || manager_.size() == 0)
        return 0;
    if (time < next_look_)
        return next_look_;
    std::set<net::roce_gid> absent;
    for (const net::roce_gid& peer : manager_.peers()) {
        if (!has_left(peer))
            continue;
        if (absent_.contains(peer))
            manager_.lose(peer, time);
        else
            absent.insert(peer);
    }
    absent_.swap(absent);
    return next_look_ = time + look_every;
}

/// @return when the next one is due; 0: none is
std::uint64_t agent::turn()
{
    const std::scoped_lock lock(mutex_);
    const std::uint64_t time = now();
    queue_.receive([&](const cm::path& from, std::span<const std::uint8_t> bytes) {
        learn_from(from);
        manager_.receive(from, bytes, time);
    });
    manager_.expire(time);
    const std::uint64_t look = look_after_peers(time), due = manager_.next_deadline();
    return look == 0 || due == 0 ? std::max(look, due) : std::min(look, due);
}

void agent::run()
{
    while (!ending_) {
        const std::uint64_t deadline = turn();
        while (const std::optional<cm::event> next = next_event())
            told_(*next);
        if (!ending_)
            woken_.wait(deadline);
    }
}

} // namespace weftio::connections
