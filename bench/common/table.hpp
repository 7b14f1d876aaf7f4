// The output of every program of bench/: a table for people, and the same rows as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weftio::bench {

/// A measured quantity, with one value for each round.
struct figure {
    std::string name; ///< as in goals.json
    std::string unit; ///< for times, sizes and errors (ns, us, MiB, frames, ...) less is better, for rates more
    std::vector<double> values;
    std::string peer{}; ///< the figure to compare with, measured alternately in the same rounds; empty: none
};

/// The requirement on a figure: "ratio >= 0.95", "value <= 100".
struct goal {
    std::string_view program, name, text;
};

/// Summary of a figure. Unknown values are NaN.
struct summary {
    double value = 0, best = 0, worst = 0;             ///< median, best and worst of the rounds
    double ratio = 0, least_ratio = 0, most_ratio = 0; ///< ratios to the peer: median, least and most of the rounds
    std::string_view goal{};                           ///< empty: none
    bool met = false;
};

/// The median; of an even number of values the mean of the middle two. @pre not empty
double median(std::vector<double> values);
/// Whether a value and a ratio to a peer meet the goal `text`. @throws std::runtime_error `text` is no goal
bool is_met(std::string_view text, double value, double ratio);
/// "2 cores, AMD EPYC, Linux 6.1.0, 2026-11-22, load 0.05"
std::string machine_words();

class table {
 public:
    /// @param program  name of the program in goals.json: "ring_bench"
    explicit table(std::string program) : program_(std::move(program)) {}

    /// @throws std::runtime_error the figure has no value, a value is not a number, or the table has no such peer with
    ///         the same number of values
    void add(figure figure);
    /// Adds a row that this machine cannot measure. The table has the reason, the JSON has no such row, and its goal is
    /// not judged.
    /// @param why  "needs 3 cores"
    void leave_out(std::string name, std::string why);
    /// Prints a line for each figure, and the number of goals that were met.
    void print() const;
    std::string json() const;
    /// Prints, and writes the rows to `path` unless it is empty. @throws std::runtime_error `path` cannot be written
    void finish(const std::string& path) const;

 private:
    const figure* find(std::string_view name) const;
    summary sum_up(const figure& figure) const;
    void print_goals() const;

    std::string program_;
    std::vector<figure> figures_;
    std::vector<std::pair<std::string, std::string>> left_out_; ///< names and reasons
};

} // namespace weftio::bench
