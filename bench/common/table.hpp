// The one shape in which every program of bench/ says what it found: a table for people, the same rows as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weftio::bench {

/// What was measured, once a round.
struct figure {
    std::string name; ///< as goals.json has it
    std::string unit; ///< of times, sizes and mishaps (ns, us, MiB, frames, ...) less is better, of rates more
    std::vector<double> values;
    std::string peer{}; ///< the figure that it was measured beside, in turn, round by round; empty: none
};

/// What a figure must be: "ratio >= 0.95", "value <= 100".
struct goal {
    std::string_view program, name, text;
};

/// A figure, summed up. What is not known is NaN.
struct summary {
    double value = 0, best = 0, worst = 0;             ///< the middle round, and the ends
    double ratio = 0, least_ratio = 0, most_ratio = 0; ///< to the peer; the middle one of the pairs, and the ends
    std::string_view goal{};                           ///< empty: none
    bool met = false;
};

/// The middle one; of an even number the mean of the two. @pre not empty
double median(std::vector<double> values);
/// Whether `text` says so of a value and of a ratio to a peer. @throws std::runtime_error it is no goal
bool is_met(std::string_view text, double value, double ratio);
/// "2 cores, AMD EPYC, Linux 6.1.0, 2026-11-22, load 0.05"
std::string machine_words();

class table {
 public:
    /// @param program  the name under which goals.json has its goals: "ring_bench"
    explicit table(std::string program) : program_(std::move(program)) {}

    /// @throws std::runtime_error there is no value, a value is no number, or there is no such peer with as many values
    void add(figure figure);
    /// A row that this machine cannot measure. The table says why, JSON leaves the row out, and its goal is not judged.
    /// @param why  "needs 3 cores"
    void leave_out(std::string name, std::string why);
    /// For people: a line for each figure, and how many goals were met.
    void print() const;
    std::string json() const;
    /// Prints, and writes the rows to `path` unless that is empty. @throws std::runtime_error it cannot be written
    void finish(const std::string& path) const;

 private:
    const figure* find(std::string_view name) const;
    summary sum_up(const figure& figure) const;
    void print_goals() const;

    std::string program_;
    std::vector<figure> figures_;
    std::vector<std::pair<std::string, std::string>> left_out_; ///< names, and why
};

} // namespace weftio::bench
