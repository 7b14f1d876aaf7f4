#include "stage.hpp"

namespace weftio::litmus {

namespace {

words::kind kind_of(const cell& what, const machine& on)
{
    if (what.where == place::gpu)
        return what.vmm ? words::mapped : words::of_gpu;
    return on.owner && what.needs_gpu() ? words::pinned : words::of_host;
}

words::kind kind_of_flags(const cell& what, const machine& on)
{
    return what.flag == flag_place::host_memory ? words::pinned : kind_of(what, on);
}

/// Before memory is made by it.
const machine& with_gpu_in_use(const machine& on)
{
    if (on.owner)
        on.owner->use();
    return on;
}

} // namespace

stage::stage(const cell& wanted, const trial_options& given, const machine& on_it)
    : what(wanted), options(given), on(with_gpu_in_use(on_it)), words_each(given.bytes / 8),
      flags_apart(wanted.flag == flag_place::other_region || wanted.flag == flag_place::host_memory),
      first(on.port, 3 * given.pairs),
      target(std::size_t{given.pairs} * (words_each + 8), kind_of(wanted, on), on.gpus()),
      other(std::size_t{given.pairs} * 8, kind_of_flags(wanted, on), on.gpus()),
      source(std::size_t{given.pairs} * words_each + 8, on.owner ? words::pinned : words::of_host),
      scratch(512, words::of_host), target_region(first.domain(), target, wanted.relaxed),
      other_region(first.domain(), other, wanted.relaxed), source_region(first.domain(), source, false),
      scratch_region(first.domain(), scratch, false)
{
    if (!wanted.needs_second_nic())
        return;
    second.emplace(on.second, 3 * given.pairs);
    second_target.emplace(second->domain(), target, wanted.relaxed);
    second_other.emplace(second->domain(), other, wanted.relaxed);
    second_source.emplace(second->domain(), source, false);
    second_scratch.emplace(second->domain(), scratch, false);
}

stage::~stage()
{
    try {
        use_owner(); // whose memory goes
    } catch (const failure&) {
        // a GPU that has failed keeps its memory
    }
}

void stage::disconnect()
{
    first.disconnect();
    if (second)
        second->disconnect();
}

} // namespace weftio::litmus
