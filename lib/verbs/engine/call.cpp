#include "call.hpp"

#include <cerrno>

#include "core/guarded.hpp"
#include "failure.hpp"

namespace weftio::verbs {

namespace {

constexpr std::size_t old_word = 4, extended_word = 8;

} // namespace

call::call(const void* command, std::size_t bytes) : size_(bytes)
{
    require(bytes >= sizeof header_ && bytes <= most_bytes, EINVAL);
    require(core::guarded_copy(bytes_.data(), command, bytes), EFAULT);
    std::memcpy(&header_, bytes_.data(), sizeof header_);
    extended_ = (header_.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) != 0;
    command_ = header_.command & IB_USER_VERBS_CMD_COMMAND_MASK;
    constexpr std::uint32_t known = IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK;
    require((header_.command & ~known) == 0, EINVAL);
}

void call::require_form(const command_form& form)
{
    if (extended_)
        require_extended_form(form);
    else
        require_old_form(form);
}

void call::require_old_form(const command_form& form)
{
    require(header_.in_words * old_word == size_, EINVAL);
    const std::span<const std::byte> all(bytes_.data() + sizeof header_, size_ - sizeof header_);
    require(all.size() >= form.request, EINVAL);
    core_ = all.first(form.request);
    driver_ = all.subspan(form.request);
    if (form.response == 0)
        return;
    const std::size_t room = header_.out_words * old_word;
    require(room >= form.response, ENOSPC);
    std::memcpy(&core_to_, core_.data(), sizeof core_to_); // each request with a response begins with its address
    core_room_ = form.response;
    driver_to_ = core_to_ + form.response;
    driver_room_ = room - form.response;
}

void call::require_extended_form(const command_form& form)
{
    require(size_ >= sizeof header_ + sizeof more_, EINVAL);
    std::memcpy(&more_, bytes_.data() + sizeof header_, sizeof more_);
    const std::span<const std::byte> all(bytes_.data() + sizeof header_ + sizeof more_,
                                         size_ - sizeof header_ - sizeof more_);
    const std::size_t core = header_.in_words * extended_word;
    require(core + more_.provider_in_words * extended_word == all.size() && more_.cmd_hdr_reserved == 0, EINVAL);
    require(core >= form.request, ENOSPC);
    core_ = all.first(core);
    driver_ = all.subspan(core);
    core_room_ = header_.out_words * extended_word;
    driver_room_ = more_.provider_out_words * extended_word;
    require((more_.response != 0) == (core_room_ + driver_room_ != 0), EINVAL);
    require(more_.response == 0 || core_room_ >= form.response, ENOSPC);
    core_to_ = more_.response;
    driver_to_ = core_to_ + core_room_;
}

void call::write(std::uint64_t to, const void* from, std::size_t bytes)
{
    require(bytes == 0 || core::guarded_copy(reinterpret_cast<void*>(to), from, bytes), EFAULT);
}

} // namespace weftio::verbs
