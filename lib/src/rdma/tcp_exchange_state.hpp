// What a tcp_exchange has, for who makes one.
#pragma once

#include <string>

#include "rdma/tcp_socket.hpp"
#include "weftio/exchange.hpp"

namespace weftio {

struct tcp_exchange::state {
    rdma::tcp_socket socket; ///< none once a call has failed
    exchange_options options;
    std::string peer;
};

} // namespace weftio
