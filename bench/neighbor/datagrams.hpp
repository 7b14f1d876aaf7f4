// Shares of several senders of datagrams (UD) at one receiver.
#pragma once

#include "neighbor/pairs.hpp"

namespace weftio::bench {

/// Names of the rows, as --only selects them.
std::vector<std::string> datagram_rows();

/// Four queue pairs send datagrams without pause to one, whose program takes them and posts the receives again: of a
/// ring that is never empty, and of one that is so all the time. Rows are the datagrams taken per second, the part of a
/// fair share (a quarter of what was taken) that the sender with the least gets, and the receives lost. All queue pairs
/// are of one port.
void measure_datagrams(const pair_options& wanted, const device& cpu, table& into);

} // namespace weftio::bench
