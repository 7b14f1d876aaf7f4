// The tables of the benchmark: a row for each shape, a column for each way to post.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/table.hpp"
#include "initiated/fabric.hpp"

namespace weftio::bench {

/// A way to post, with its figures.
struct column {
    std::string name; ///< "kernel, lane"
    poster who;
    bool whole_block = false;  ///< a block owns a queue pair, and its lanes write entries at once
    std::uint32_t threads = 0; ///< of proxies
};

/// Prints tables line by line, and collects their figures for a file. The last column, gain, says how many times as
/// good the best column of kernels is as the best one of proxies, by their medians.
class report {
 public:
    explicit report(std::string path) : path_(std::move(path)) {}

    /// @param title  begins the names of the figures: "bandwidth, 64 queues, 8 engines"
    /// @param unit   "us" where less is better, else a rate
    void begin(std::string title, std::string unit, const std::vector<column>& columns);
    /// @param values  for each column, for each round
    void add(const std::string& row, const std::vector<std::vector<double>>& values);
    /// Writes the file anew: a run that is ended early leaves the tables that were done. @throws std::runtime_error
    void save() const;

 private:
    std::string path_, title_, unit_;
    std::vector<column> columns_;
    table figures_{"initiated_bench"};
};

} // namespace weftio::bench
