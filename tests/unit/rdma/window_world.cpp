#include "window_world.hpp"

#include <algorithm>

namespace weftio::test {

window_world::window_world(ends_at where, unsigned seed, const std::string& memory_of)
    : ends_(where), owner_(device::open(memory_of)), random_(seed),
      lent_(owner_.allocate(lent_bytes, memory_kind::cpu_device)), lent_model_(lent_bytes),
      device_(lends_at(), {.address = "10.9.9.9", .application_turns = true})
{
    for (std::uint8_t& each : lent_model_)
        each = static_cast<std::uint8_t>(random_() >> 8);
    std::ranges::copy(lent_model_, static_cast<std::uint8_t*>(lent_.cpu_address()));
    for (unsigned number = 0; number != regions; ++number)
        make_region(number);
    for (unsigned number = 0; number != windows; ++number)
        make_window(number);
    for (unsigned number = 0; number != couples; ++number) {
        couple& made = couples_[number];
        made.lender_as.domain = number == 3 ? 1 : 0;
        made.strict = number != 1;
        const region_options options{.rights = all_rights, .domain = domains_[made.lender_as.domain]};
        made.own.emplace(ends_.at(0), owner_, own_bytes, options);
        made.inbox.emplace(lends_at(), owner_, inbox_bytes, options);
        made.own_model = made.own->copy();
        made.inbox_model = made.inbox->copy();
        make_pairs(number);
    }
}

/// Lenders are at every engine of a port that has several.
void window_world::make_pairs(unsigned number)
{
    couple& at = couples_[number];
    const protection_domain domain = domains_[at.lender_as.domain];
    for (const bool lends : {number % 2 != 0, number % 2 == 0})
        (lends ? at.lender : at.accessor) =
            std::make_unique<fake_pair>(lends ? lends_at() : ends_.at(0), 64, 64, domain, rdma_service::reliable,
                                        nic::window_options{.strict = at.strict});
    at.lender_as.queue = ++made_pairs_;
    connect(at);
}

void window_world::connect(couple& at)
{
    nic::rdma_connection there = ends_.connection(0), back = ends_.connection(1);
    there.peer_queue = at.lender->number();
    back.peer_queue = at.accessor->number();
    for (nic::rdma_connection* const each : {&there, &back}) {
        each->path_mtu = mtu;
        each->timeout = 0; // nothing is lost
    }
    at.accessor->connect(there);
    at.lender->connect(back);
}

void window_world::reset(couple& at)
{
    ends_.run();
    at.accessor->restart();
    at.lender->restart();
    connect(at);
}

/// One of five is zero-based, one ends at the last address, others begin near 2^32 or low.
region_options window_world::random_options(unsigned domain, std::size_t bytes)
{
    access rights = access::none;
    for (const access each : {access::local_write, access::bind})
        rights = rights | (chance(8) ? access::none : each);
    for (const access each : {access::remote_write, access::remote_read, access::remote_atomic})
        if (chance(3) && (each == access::remote_read || (rights & access::local_write) != access::none))
            rights = rights | each;
    const std::array<std::uint64_t, 5> bases{0, 0 - std::uint64_t{bytes}, 0 - std::uint64_t{bytes} - 8, 0xfffffff0,
                                             std::uint64_t{0x10000}};
    return {
        .rights = rights, .domain = domains_[domain], .iova = bases[chance(3) ? below(bases.size()) : 3 + below(2)]};
}

void window_world::note_region(unsigned number, const region_options& options, std::size_t at, std::size_t bytes)
{
    window_model::region& is = model_.regions[number];
    if (is.key != 0)
        old_keys_.push_back(is.key);
    is = {regions_[number]->lkey(), *options.iova, bytes, at, options.rights, options.domain == domains_[0] ? 0u : 1u};
    tell("region {} is now {:#x}, {} bytes at {:#x}, memory {}, rights {:#x}, domain {}", number, is.key, is.bytes,
         is.base, is.at, static_cast<unsigned>(is.rights), is.domain);
}

void window_world::make_region(unsigned number)
{
    const region_options options = random_options(number == 4 ? 1 : 0, lent_bytes);
    regions_[number].emplace(lent_, options);
    regions_[number]->register_with(lends_at());
    note_region(number, options, 0, lent_bytes);
}

void window_world::make_window(unsigned number)
{
    const unsigned domain = number == 5 ? 1 : 0;
    const window_type type = chance(2) ? window_type::type_1 : window_type::type_2;
    windows_[number].emplace(device_, type, domains_[domain]);
    const std::uint32_t key = windows_[number]->rkey();
    indices_[number] = key >> 8;
    model_.windows[key >> 8] = {.type = type, .domain = domain, .key = key};
    tell("window {} is made: {:#x}, type {}, domain {}", number, key, static_cast<unsigned>(type), domain);
}

/// A region with windows is as it was.
void window_world::change_region()
{
    const auto number = static_cast<unsigned>(below(regions));
    const window_model::region& is = model_.regions[number];
    const unsigned bound = model_.windows_of(is);
    if (is.key == 0)
        return make_region(number);
    if (chance(4))
        return close_region(number);
    const bool replaces = chance(3);
    const std::size_t at = replaces ? 0 : below(lent_bytes / 16) * 4,
                      bytes = replaces ? lent_bytes : 1 + below(lent_bytes - at);
    const region_options options = random_options(is.domain, bytes);
    bool refused = false;
    try {
        if (replaces)
            regions_[number]->replace(lent_, options);
        else
            regions_[number]->rereg(options, at, bytes);
    } catch (const weftio::error& why) {
        refused = why.code() == errc::in_use;
    }
    EXPECT_EQ(refused, bound != 0);
    if (!refused)
        note_region(number, options, at, bytes);
}

/// close() is refused while windows are bound; the destructor frees them.
void window_world::close_region(unsigned number)
{
    window_model::region& is = model_.regions[number];
    const unsigned bound = model_.windows_of(is);
    bool refused = false;
    try {
        regions_[number]->close();
    } catch (const weftio::error& why) {
        refused = why.code() == errc::in_use;
    }
    EXPECT_EQ(refused, bound != 0);
    if (refused && chance(2))
        return;
    tell("region {} is gone, of which {} windows were", number, bound);
    if (refused || chance(2))
        regions_[number].reset();
    model_.free_windows_of(is);
    old_keys_.push_back(std::exchange(is.key, 0));
}

void window_world::step()
{
    ++steps_;
    const std::size_t what = below(100);
    if (what < 40) {
        lend_some();
    } else if (what < 90) {
        access_some();
    } else if (what < 97) {
        change_region();
    } else if (what < 99) {
        const auto number = static_cast<unsigned>(below(windows));
        windows_[number].reset();
        model_.windows.erase(indices_[number]);
        make_window(number);
    } else if (chance(2)) {
        ends_.run();
        make_pairs(static_cast<unsigned>(below(couples)));
    } else {
        reset(couples_[below(couples)]);
    }
    compare();
}

void window_world::compare()
{
    ASSERT_EQ(std::memcmp(lent_.cpu_address(), lent_model_.data(), lent_bytes), 0) << "lent memory\n" << story();
    for (const couple& each : couples_) {
        ASSERT_EQ(std::memcmp(each.own->data(), each.own_model.data(), own_bytes), 0) << "what was read\n" << story();
        ASSERT_EQ(std::memcmp(each.inbox->data(), each.inbox_model.data(), inbox_bytes), 0) << "what was sent\n"
                                                                                            << story();
    }
    for (unsigned number = 0; number != windows; ++number) {
        const memory_window_standing is = windows_[number]->standing();
        const window_model::window& should = model_.windows.at(indices_[number]);
        ASSERT_EQ(is.rkey, should.key) << story();
        ASSERT_EQ(is.bound, should.bound) << story();
        ASSERT_EQ(is.region, should.bound ? should.of->key : 0u) << story();
    }
    for (unsigned number = 0; number != regions; ++number)
        if (model_.regions[number].key != 0) {
            ASSERT_EQ(regions_[number]->windows(), model_.windows_of(model_.regions[number])) << story();
        }
    ASSERT_FALSE(testing::Test::HasFailure()) << story();
}

std::string window_world::story() const
{
    std::string all;
    for (const std::string& each : told_)
        all += each + "\n";
    return all;
}

} // namespace weftio::test
