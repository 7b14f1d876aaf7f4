// What the SVG diagrams of the apps have in common.
#pragma once

#include <string>
#include <string_view>

namespace weftio::chart {

/// A grid step of 1, 2 or 5 times a power of ten, of which at most eight reach `most`. @pre most > 0
double grid_step(double most);
/// Escapes `text` for XML; invalid characters become U+FFFD.
std::string escaped(std::string_view text);
/// A white drawing with 12 px text, as a file. @param style  rules of CSS besides those of every diagram
std::string document(double width, double height, std::string_view style, std::string_view body);

} // namespace weftio::chart
