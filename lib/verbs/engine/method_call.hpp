// A request to a node by ioctl(), with the number of a method (rdma/rdma_user_ioctl_cmds.h).
#pragma once

#include <rdma/rdma_user_ioctl_cmds.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "core/guarded.hpp"
#include "failure.hpp"

namespace weftio::verbs {

struct method_id {
    std::uint16_t object, method;
    bool operator==(const method_id&) const = default;
};

/// struct ib_uverbs_ioctl_hdr without its flexible array.
struct method_header {
    std::uint16_t length, object_id, method_id, num_attrs;
    std::uint64_t reserved1;
    std::uint32_t driver_id, reserved2;
};
static_assert(sizeof(method_header) == sizeof(ib_uverbs_ioctl_hdr));

/// A request, copied from the program's memory.
class method_call {
 public:
    /// @throws failure EFAULT, EINVAL
    explicit method_call(const void* argument) : argument_(argument)
    {
        require(core::guarded_copy(&header_, argument, sizeof header_), EFAULT);
        require(header_.length == sizeof header_ + header_.num_attrs * sizeof(ib_uverbs_attr), EINVAL);
        require(header_.num_attrs <= attributes_.size(), EINVAL);
        const void* const attributes = static_cast<const std::byte*>(argument) + sizeof header_;
        require(core::guarded_copy(attributes_.data(), attributes, header_.length - sizeof header_), EFAULT);
    }
    method_id id() const noexcept { return {header_.object_id, header_.method_id}; }

    const ib_uverbs_attr* find(std::uint16_t attribute) const noexcept
    {
        const auto* const end = attributes_.data() + header_.num_attrs;
        const auto* const found = std::find_if(attributes_.data(), end,
                                               [=](const ib_uverbs_attr& each) { return each.attr_id == attribute; });
        return found == end ? nullptr : found;
    }
    /// The number that an attribute of the request is. @throws failure EINVAL there is none
    std::uint64_t number(std::uint16_t attribute) const
    {
        const ib_uverbs_attr* const found = find(attribute);
        require(found != nullptr, EINVAL);
        return found->data;
    }
    /// Answers with a number where the attribute points to. @throws failure EFAULT, EINVAL
    void answer(std::uint16_t attribute, std::uint32_t value) const
    {
        const ib_uverbs_attr* const found = find(attribute);
        require(found != nullptr && found->len == sizeof value, EINVAL);
        require(core::guarded_copy(reinterpret_cast<void*>(found->data), &value, sizeof value), EFAULT);
        put(found, offsetof(ib_uverbs_attr, flags),
            static_cast<std::uint16_t>(found->flags | UVERBS_ATTR_F_VALID_OUTPUT));
    }
    /// Answers with the handle of a new object, in the attribute itself. @throws failure EFAULT, EINVAL
    void answer_handle(std::uint16_t attribute, std::uint32_t handle) const
    {
        const ib_uverbs_attr* const found = find(attribute);
        require(found != nullptr, EINVAL);
        put(found, offsetof(ib_uverbs_attr, data), std::uint64_t{handle});
    }

 private:
    static constexpr std::size_t most_attributes = 64;

    /// Changes a field of an attribute in the program's memory.
    template <class Value>
    void put(const ib_uverbs_attr* attribute, std::size_t field, Value value) const
    {
        const std::size_t at =
            sizeof header_ + static_cast<std::size_t>(attribute - attributes_.data()) * sizeof *attribute;
        auto* const to = static_cast<std::byte*>(const_cast<void*>(argument_)) + at + field;
        require(core::guarded_copy(to, &value, sizeof value), EFAULT);
    }

    const void* const argument_;
    method_header header_{};
    std::array<ib_uverbs_attr, most_attributes> attributes_;
};

} // namespace weftio::verbs
