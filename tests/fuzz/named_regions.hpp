// Memory of every kind that entries may name by its key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

#include "core/undying.hpp"
#include "expect.hpp"
#include "guarded.hpp"
#include "keys/key_table.hpp"
#include "raw_entry.hpp"

namespace weftio::fuzz {

/// Memory that entries may name: good, short, without rights, of another domain, gone, and not the CPU's. One key more
/// is of nothing.
class named_regions {
 public:
    static constexpr std::size_t count = 7, honest = 7;
    static constexpr std::size_t data_bytes = 4 * guarded::page, hole_bytes = guarded::page;

    explicit named_regions(keys::nic_keys& keys) : keys_(keys)
    {
        void* const hole = mmap(nullptr, hole_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        expect(hole != MAP_FAILED, "a hole");
        const keys::key_entry good{.cpu = data_.kernel(),
                                   .base = 1 << 20,
                                   .bytes = data_bytes,
                                   .rights = access::local_write | access::remote_write};
        keys::key_entry cut = good, without = good, strange = good, gone = good, unmapped = good;
        cut.cpu += data_bytes - 100;
        cut.bytes = 100;
        short_ = cut;
        without.rights = access::none;
        strange.domain = protection_domain::make();
        gone.cpu = static_cast<std::byte*>(hole);
        gone.bytes = hole_bytes;
        unmapped.cpu = nullptr;
        unmapped.device = reinterpret_cast<const devices::device_backend*>(this); // nobody looks at it
        for (const keys::key_entry& each : {good, cut, without, strange, gone, unmapped})
            add(each);
        named_[6] = {.key = named_[0].key ^ 0xff, .base = good.base, .bytes = good.bytes};
        at_ = honest;
        add({.cpu = safe_.kernel(), .base = 1 << 20, .bytes = safe_.bytes()});
    }

    /// Mostly the good one. Ends with its region, or lies anywhere in it, or not quite.
    named_region any(numbers& in) const
    {
        const std::uint8_t which = in.byte(), where = in.byte();
        const named_region& of = named_[which < 200 ? 0 : which % count];
        const std::uint64_t bytes = 1 + in.half() % (of.bytes < 2048 ? of.bytes : 2048);
        const std::uint64_t at =
            where % 2 == 0 ? of.bytes - bytes + (where >= 250) : in.half() % (of.bytes - bytes + 1);
        return {.key = of.key, .base = of.base + at, .bytes = where == 251 ? 0 : bytes};
    }
    /// The short one gets another key; the old one is of nothing then.
    void renew()
    {
        keys::key_table& table = core::undying<keys::key_table>();
        table.withdraw(named_[1].key);
        keys_.forget(named_[1].key);
        table.release(named_[1].key);
        named_[1].key = table.add(short_);
        keys_.grant(named_[1].key, true);
    }
    const named_region& good() const { return named_[0]; }
    named_region of_honest(std::size_t at, std::size_t bytes) const
    {
        return {.key = named_[honest].key, .base = named_[honest].base + at, .bytes = bytes};
    }
    std::uint8_t* honest_bytes() const { return reinterpret_cast<std::uint8_t*>(safe_.kernel()); }

 private:
    void add(const keys::key_entry& region)
    {
        const std::uint32_t key = core::undying<keys::key_table>().add(region);
        keys_.grant(key, region.cpu != nullptr);
        named_[at_++] = {.key = key, .base = region.base, .bytes = region.bytes};
    }

    keys::nic_keys& keys_;
    guarded data_{data_bytes}, safe_{guarded::page};
    std::array<named_region, count + 1> named_{};
    keys::key_entry short_;
    std::size_t at_ = 0;
};

} // namespace weftio::fuzz
