// Selects frames by expressions of pcap-filter(7).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "reader/capture.hpp"

namespace weftio::replay {

/// A filter expression, compiled by libpcap once for each link type. One thread at a time.
class frame_filter {
 public:
    /// @param expression  empty: all frames pass
    /// @throws open_error  libpcap does not accept the expression
    explicit frame_filter(std::string expression);
    frame_filter(const frame_filter&) = delete;
    frame_filter& operator=(const frame_filter&) = delete;
    ~frame_filter();

    /// Whether the frame, as captured, passes. No frame passes if the expression does not apply to its link type.
    bool passes(const frame& captured);

 private:
    struct program;
    std::unique_ptr<program> compile(std::uint32_t link_type, std::string& error) const;

    std::string expression_;
    std::map<std::uint32_t, std::unique_ptr<program>> programs_; ///< by link type; empty if it does not apply
};

} // namespace weftio::replay
