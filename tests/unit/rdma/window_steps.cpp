// What lenders and accessors of a window_world post, and what should come of it.
#include <algorithm>

#include <gmock/gmock.h>

#include "window_world.hpp"

namespace weftio::test {

namespace {

std::string name_of(access right)
{
    return right == access::remote_write ? "WRITE" : right == access::remote_read ? "READ" : "atomic";
}

} // namespace

/// Most often the present key of a window that suits the couple.
std::uint32_t window_world::some_window_key(const couple& of, bool for_access)
{
    for (unsigned tries = 0; tries != 16; ++tries) {
        const window_model::window& each = model_.windows.at(indices_[below(windows)]);
        const bool ours = each.type == window_type::type_1 || each.queue == of.lender_as.queue;
        if (each.domain == of.lender_as.domain && each.bound == for_access && (!for_access || ours))
            return each.key;
    }
    return model_.windows.at(indices_[below(windows)]).key;
}

/// Any key: of a window, of a region, an old one, or one that is never given.
std::uint32_t window_world::some_key()
{
    const std::uint32_t window = model_.windows.at(indices_[below(windows)]).key;
    const std::array<std::uint32_t, 5> keys{window, window ^ (1u << below(8)), model_.regions[below(regions)].key,
                                            old_keys_.empty() ? 0 : old_keys_[below(old_keys_.size())],
                                            static_cast<std::uint32_t>(random_()) | 0x80000000};
    return keys[below(keys.size())];
}

window_world::prediction window_world::bind_some(couple& at)
{
    window_model::bind what;
    what.strict = at.strict;
    what.window = chance(8) ? some_key() : some_window_key(at, chance(4));
    const auto found = model_.windows.find(what.window >> 8);
    what.type = (found == model_.windows.end() || found->second.type == window_type::type_2) != chance(20)
                    ? window_type::type_2
                    : window_type::type_1;
    what.next = (what.window & ~0xffu) | ((what.window + (chance(4) ? below(256) : 1)) & 0xff);
    const window_model::region& to = model_.regions[chance(8)                  ? below(regions)
                                                    : at.lender_as.domain == 1 ? 4
                                                                               : below(4)];
    what.region = chance(20) ? some_key() : to.key;
    const std::size_t skip = below(to.bytes);
    what.address = to.base + skip;
    what.bytes = chance(3) ? to.bytes - skip : 1 + below(to.bytes - skip);
    if (chance(10)) // beyond the region, or around the end of the address space
        what.address -= chance(2) ? below(300) : skip + below(300);
    if (chance(10))
        what.bytes += chance(2) ? below(300) : 0x7fffe000;
    if (chance(20))
        what.bytes = 0;
    for (const access each : {access::remote_write, access::remote_read, access::remote_atomic})
        what.rights = what.rights | (chance(4) ? access::none : each);
    const window_entry entry{.next = what.next,
                             .region = what.region,
                             .address = what.address,
                             .bytes = what.bytes,
                             .rights = what.rights,
                             .type = what.type,
                             .queue = what.type == window_type::type_2 ? at.lender->number() : WEFTIO_MKEY_ANY_QUEUE};
    const std::uint32_t position =
        at.lender->post(WEFTIO_OPCODE_UMR, bind_segments(entry), what.window, WEFTIO_CE_ALWAYS);
    tell("queue {} binds {:#x} as type {} to {} bytes at {:#x} of {:#x}, rights {:#x}, next {:#x}{}",
         at.lender_as.queue, what.window, static_cast<unsigned>(what.type), what.bytes, what.address, what.region,
         static_cast<unsigned>(what.rights), what.next, at.strict ? "" : ", not strictly");
    return {.position = position, .at_home = model_.bind_window(at.lender_as, what)};
}

window_world::prediction window_world::free_some(couple& at)
{
    const std::uint32_t key = chance(8) ? some_key() : some_window_key(at, true);
    const auto found = model_.windows.find(key >> 8);
    const bool type_1 = found != model_.windows.end() && found->second.type == window_type::type_1;
    const std::uint32_t next = static_cast<std::uint32_t>(below(256));
    tell("queue {} {} {:#x}, next {:#x}", at.lender_as.queue, type_1 ? "unbinds" : "invalidates", key, next);
    if (type_1 && !chance(20))
        return {.position = at.lender->post(WEFTIO_OPCODE_UMR, unbind_segments(next), key, WEFTIO_CE_ALWAYS),
                .at_home =
                    model_.bind_window(at.lender_as, {.type = window_type::type_1, .window = key, .next = next})};
    return {.position = at.lender->post(WEFTIO_OPCODE_UMR, invalidate_segments(next), key, WEFTIO_CE_ALWAYS),
            .at_home = model_.invalidate(at.lender_as, key)};
}

/// The lender names memory of its own by the key of a window.
window_world::prediction window_world::use_as_own(couple& at)
{
    const std::uint32_t key = some_window_key(at, true);
    const window_model::window& named = model_.windows.at(key >> 8);
    tell("queue {} sends 8 bytes by {:#x}", at.lender_as.queue, key);
    return {.position = at.lender->post(WEFTIO_OPCODE_RDMA_WRITE, {at.own->remote_at(0), pointer(8, key, named.first)},
                                        0, WEFTIO_CE_ALWAYS),
            .at_home = model_.local_use(key)};
}

void window_world::lend_some()
{
    couple& at = couples_[below(couples)];
    std::vector<prediction> all;
    for (std::size_t left = 1 + below(4); left != 0; --left) {
        const std::size_t what = below(12);
        all.push_back(what == 0 ? use_as_own(at) : what < 3 ? free_some(at) : bind_some(at));
        if (all.back().at_home != refusal::none)
            break;
    }
    run(at, *at.lender, all);
}

/// Inside of what the key stands for, at its edges, beyond, or around the end of the address space.
window_model::request window_world::some_request(const couple& of, access right)
{
    window_model::request what{.key = chance(12) ? some_key() : some_window_key(of, true), .right = right};
    std::uint64_t base = 0x10000, all = 1000;
    if (const window_model::region* const named = model_.find_region(what.key)) {
        base = named->base;
        all = named->bytes;
    } else if (const auto found = model_.windows.find(what.key >> 8); found != model_.windows.end()) {
        base = found->second.first;
        all = found->second.bytes;
    }
    const bool atomic = right == access::remote_atomic;
    what.bytes = atomic ? 8 : std::min<std::uint64_t>(below(700), chance(4) ? 700 : all);
    const std::uint64_t last = all > what.bytes ? all - what.bytes : 0;
    const std::array<std::uint64_t, 8> from{base,
                                            base + last,
                                            base + last,
                                            base + below(last + 1),
                                            base + last + 1,
                                            base - 1,
                                            base - what.bytes,
                                            0 - std::uint64_t{below(700)}};
    what.address = from[chance(6) ? below(from.size()) : below(4)];
    what.address -= atomic ? what.address % 8 : 0;
    tell("peer of {}: {} of {} bytes at {:#x} by {:#x}", of.lender_as.queue, name_of(right), what.bytes, what.address,
         what.key);
    return what;
}

window_world::prediction window_world::write_some(couple& at, std::size_t& used)
{
    const window_model::request what = some_request(at, access::remote_write);
    const std::size_t from = own_bytes / 2 + below(own_bytes / 2 - 700);
    static_cast<void>(used);
    std::size_t to = 0;
    const refusal why = model_.access_by(at.lender_as, what, to);
    if (why == refusal::none)
        std::copy_n(at.own_model.begin() + static_cast<std::ptrdiff_t>(from), what.bytes,
                    lent_model_.begin() + static_cast<std::ptrdiff_t>(to));
    std::vector<segment> body{remote(what.address, what.key)};
    if (what.bytes != 0)
        body.push_back(at.own->local(from, what.bytes));
    return {.position = at.accessor->post(WEFTIO_OPCODE_RDMA_WRITE, body, 0, fence_ ? WEFTIO_FENCE : 0),
            .at_peer = why};
}

window_world::prediction window_world::read_some(couple& at, std::size_t& used)
{
    const window_model::request what = some_request(at, access::remote_read);
    std::size_t from = 0;
    const refusal why = model_.access_by(at.lender_as, what, from);
    if (why == refusal::none)
        std::copy_n(lent_model_.begin() + static_cast<std::ptrdiff_t>(from), what.bytes,
                    at.own_model.begin() + static_cast<std::ptrdiff_t>(used));
    std::vector<segment> body{remote(what.address, what.key)};
    if (what.bytes != 0)
        body.push_back(at.own->local(used, what.bytes));
    const bool fenced = std::exchange(fence_, true);
    used += what.bytes;
    return {.position = at.accessor->post(WEFTIO_OPCODE_RDMA_READ, body, 0, fenced ? WEFTIO_FENCE : 0), .at_peer = why};
}

window_world::prediction window_world::change_some(couple& at, std::size_t& used)
{
    const window_model::request what = some_request(at, access::remote_atomic);
    const bool swaps = chance(2), equal = chance(2);
    const std::uint64_t operand = random_() * 0x123456789abcdefull;
    std::uint64_t word = 0;
    std::size_t to = 0;
    const refusal why = model_.access_by(at.lender_as, what, to);
    if (why == refusal::none) {
        std::memcpy(&word, &lent_model_[to], sizeof word);
        const std::uint64_t now = swaps ? (equal ? operand : word) : word + operand;
        std::memcpy(&lent_model_[to], &now, sizeof now);
        std::memcpy(&at.own_model[used], &word, sizeof word);
    }
    const bool fenced = std::exchange(fence_, true);
    const std::uint32_t position = at.accessor->post(
        swaps ? WEFTIO_OPCODE_COMPARE_SWAP : WEFTIO_OPCODE_FETCH_ADD,
        {remote(what.address, what.key), atomic(operand, equal ? word : ~word), at.own->local(used, 8)}, 0,
        fenced ? WEFTIO_FENCE : 0);
    used += 8;
    return {.position = position, .at_peer = why};
}

/// A SEND, most often with invalidate. Of one that is refused, all packets but the last have arrived.
window_world::prediction window_world::send_some(couple& at, std::size_t& used)
{
    static_cast<void>(used);
    const bool invalidates = !chance(4);
    const std::uint32_t key = chance(8) ? some_key() : some_window_key(at, true);
    const std::size_t bytes = below(700), from = own_bytes / 2 + below(own_bytes / 2 - 700),
                      to = below(inbox_bytes - 700);
    refusal why = invalidates ? model_.invalidate(at.lender_as, key) : refusal::none;
    if (why == refusal::not_a_window && model_.find_region(key) != nullptr)
        why = refusal::not_invalidated;
    const std::size_t arrived = why == refusal::none ? bytes : bytes == 0 ? 0 : (bytes - 1) / mtu * mtu;
    std::copy_n(at.own_model.begin() + static_cast<std::ptrdiff_t>(from), arrived,
                at.inbox_model.begin() + static_cast<std::ptrdiff_t>(to));
    at.lender->post_receive({at.inbox->local(to, 700)});
    receives_.push_back({why == refusal::none ? std::uint8_t{0} : std::uint8_t{WEFTIO_SYNDROME_REMOTE_INVALID},
                         invalidates ? key : 0, static_cast<std::uint32_t>(bytes)});
    tell("peer of {}: SEND of {} bytes, invalidates {:#x}", at.lender_as.queue, bytes, invalidates ? key : 0);
    return {.position = at.accessor->post(invalidates ? WEFTIO_OPCODE_SEND_INVALIDATE : WEFTIO_OPCODE_SEND,
                                          bytes == 0 ? std::vector<segment>{}
                                                     : std::vector<segment>{at.own->local(from, bytes)},
                                          invalidates ? key : 0, fence_ ? WEFTIO_FENCE : 0),
            .at_peer = why,
            .silent = true};
}

void window_world::access_some()
{
    couple& at = couples_[below(couples)];
    std::vector<prediction> all;
    std::size_t used = 0;
    fence_ = false;
    receives_.clear();
    for (std::size_t left = 1 + below(4); left != 0; --left) {
        const std::size_t what = below(9);
        all.push_back(what < 4   ? write_some(at, used)
                      : what < 6 ? read_some(at, used)
                      : what < 7 ? change_some(at, used)
                                 : send_some(at, used));
        if (all.back().at_peer != refusal::none)
            break;
    }
    if (all.back().at_peer != refusal::none && !all.back().silent && chance(2)) // what is behind a failure does nothing
        at.accessor->post(WEFTIO_OPCODE_NOP, {});
    run(at, *at.accessor, all);
}

void window_world::run(couple& at, fake_pair& by, const std::vector<prediction>& all)
{
    by.push();
    const prediction& last = all.back();
    for (const prediction& each : all)
        ++seen_[{&by == at.accessor.get(), each.at_home != refusal::none ? each.at_home : each.at_peer}];
    const bool fails = last.at_home != refusal::none || (last.at_peer != refusal::none && !last.silent);
    ASSERT_TRUE(ends_.ports.run_until(
        [&] { return fails ? by.nic().failed() : by.sent().position == (last.position & 0xffff); }, 1))
        << "it hangs\n"
        << story();
    if (&by == at.accessor.get())
        expect_receives(at);
    if (last.at_home != refusal::none || last.at_peer != refusal::none) {
        expect_failure(at, by, last);
        reset(at);
    } else {
        expect_no_failure(by, last);
    }
}

void window_world::expect_failure(couple& at, fake_pair& by, const prediction& failed)
{
    if (!failed.silent) {
        const refusal why = failed.at_home != refusal::none ? failed.at_home : refusal::remote_access;
        const nic::send_outcome reported = by.reported();
        EXPECT_EQ(reported.position, failed.position);
        EXPECT_EQ(reported.reason, why) << reported.text;
        EXPECT_EQ(reported.syndrome, core::syndrome_of(why)) << reported.text;
    }
    if (failed.at_peer != refusal::none) {
        ends_.ports.run_until([&] { return at.lender->nic().failed(); }, 1);
        EXPECT_THAT(at.lender->reported().text, testing::EndsWith(explain(failed.at_peer)));
    }
}

void window_world::expect_no_failure(fake_pair& by, const prediction& last)
{
    EXPECT_EQ(by.sent().syndrome, 0);
    EXPECT_EQ(by.sent().position, last.position & 0xffff);
    EXPECT_EQ(by.reported().reason, refusal::none);
}

void window_world::expect_receives(couple& at)
{
    for (const received& each : receives_) {
        const std::optional<weftio_cqe> cqe = at.lender->received();
        ASSERT_TRUE(cqe) << at.lender->reported().text << "; " << at.accessor->reported().text << "\n" << story();
        const bool good = weftio_cqe_opcode(cqe->publication) != WEFTIO_CQE_OPCODE_RESPONDER_ERROR;
        EXPECT_EQ(good, each.syndrome == 0);
        if (!good) {
            EXPECT_EQ(weftio_cqe_syndrome(&*cqe), each.syndrome);
        } else {
            EXPECT_EQ(weftio_swap32(cqe->byte_count_be), each.bytes);
            EXPECT_EQ(each.invalidated != 0 ? weftio_swap32(cqe->immediate_be) : 0, each.invalidated);
        }
    }
}

} // namespace weftio::test
