// The pages that weftio-packets has built in.
#pragma once

#include <string>

namespace weftio::packets {

std::string front_page();
std::string contact_page();

} // namespace weftio::packets
