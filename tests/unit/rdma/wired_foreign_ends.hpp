// foreign_ends on the software NIC: at two ports on a wire, or both at one of them.
#pragma once

#include "foreign_ends.hpp"
#include "two_ends.hpp"

namespace weftio::test {

struct foreign_wires {
    wired_ports ports{engine_mode::thread};
};

class wired_foreign_ends : private foreign_wires, public foreign_ends {
 public:
    explicit wired_foreign_ends(const foreign_shape& shape, const std::string& device_spec = "cpu")
        : foreign_ends(shape, {&ports.get(0), &ports.get(shape.one_port ? 0 : 1)}, device_spec)
    {}
};

} // namespace weftio::test
