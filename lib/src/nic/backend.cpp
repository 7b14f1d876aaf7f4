#include "nic/backend.hpp"

#include <fmt/format.h>

#include "weftio/error.hpp"

namespace weftio::nic {

void require_engine(const backend& port, std::string_view who, unsigned engine)
{
    if (engine >= port.engine_count())
        throw error(errc::invalid_argument, fmt::format("weftio: {}: there is no engine {} at port {}, which has {}, "
                                                        "counted from 0; name one of these, or open "
                                                        "the port with more .engines",
                                                        who, engine, port.spec(), port.engine_count()));
}

} // namespace weftio::nic
