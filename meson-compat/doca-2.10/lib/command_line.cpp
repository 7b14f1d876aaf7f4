#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "argp.hpp"
#include "object.hpp"

namespace weftio::doca {
namespace {

struct option_word {
    std::string_view name;
    bool two_dashes;
    char* value; ///< behind "=", null without
};

/// Takes "-NAME", "--NAME", each with "=VALUE" or without.
option_word word_of(char* argument)
{
    const bool two_dashes = std::strncmp(argument, "--", 2) == 0;
    require(argument[0] == '-' && argument[1] && (!two_dashes || argument[2]), DOCA_ERROR_INVALID_VALUE,
            "\"{}\" is no option", argument);
    char* name = argument + (two_dashes ? 2 : 1);
    char* equals = std::strchr(name, '=');
    const std::size_t length = equals ? static_cast<std::size_t>(equals - name) : std::strlen(name);
    require(length, DOCA_ERROR_INVALID_VALUE, "\"{}\" has no name of an option before \"=\"", argument);
    return {{name, length}, two_dashes, equals ? equals + 1 : nullptr};
}

/// Null when there is none.
const doca_argp_param* named(const option_word& word, const std::vector<const doca_argp_param*>& parameters)
{
    auto first = [&](std::string doca_argp_param::*name) {
        auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const doca_argp_param* one) { return one->*name == word.name; });
        return found == parameters.end() ? nullptr : *found;
    };
    auto* by_long = first(&doca_argp_param::long_name);
    auto* by_short = first(&doca_argp_param::short_name);
    if (word.two_dashes)
        return by_long ? by_long : by_short;
    return by_short ? by_short : by_long;
}

bool is_option(char* argument, const std::vector<const doca_argp_param*>& parameters)
{
    try {
        return named(word_of(argument), parameters);
    } catch (const failure&) {
        return false;
    }
}

bool boolean_of(const doca_argp_param& parameter, const char* value)
{
    if (!value)
        return true;
    const std::string_view text = value;
    require(text == "true" || text == "false", DOCA_ERROR_INVALID_VALUE,
            "option {} takes no value but =true and =false, not \"{}\"", shown(parameter), text);
    return text == "true";
}

int integer_of(const doca_argp_param& parameter, std::string_view text)
{
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    require(error == std::errc() && end == text.data() + text.size(), DOCA_ERROR_INVALID_VALUE,
            "option {}: \"{}\" is no decimal number, or too large for an int", shown(parameter), text);
    return value;
}

} // namespace

std::vector<given_option> options_in(int argc, char** argv, const std::vector<const doca_argp_param*>& parameters)
{
    std::vector<given_option> given;
    for (int i = 1; i < argc && argv[i]; ++i) {
        option_word word = word_of(argv[i]);
        const doca_argp_param* parameter = named(word, parameters);
        require(parameter, DOCA_ERROR_INVALID_VALUE, "unknown option \"{}\"", argv[i]);
        if (parameter->type == DOCA_ARGP_TYPE_BOOLEAN) {
            given.push_back({parameter, boolean_of(*parameter, word.value)});
            continue;
        }
        if (!word.value) {
            require(i + 1 < argc && argv[i + 1] && !is_option(argv[i + 1], parameters), DOCA_ERROR_INVALID_VALUE,
                    "option {} needs a value", shown(*parameter));
            word.value = argv[++i];
        }
        if (parameter->type == DOCA_ARGP_TYPE_INT)
            given.push_back({parameter, integer_of(*parameter, word.value)});
        else
            given.push_back({parameter, word.value});
    }
    return given;
}

std::string shown(const doca_argp_param& parameter)
{
    std::string text;
    if (!parameter.short_name.empty())
        text += "-" + parameter.short_name;
    if (!parameter.long_name.empty())
        text += (text.empty() ? "--" : ", --") + parameter.long_name;
    if (!parameter.arguments.empty())
        text += " " + parameter.arguments;
    return text;
}

std::string help_of(std::string_view program, const std::vector<const doca_argp_param*>& parameters)
{
    constexpr std::size_t most = 36;
    std::size_t width = 0;
    for (const doca_argp_param* one : parameters)
        if (const std::size_t size = shown(*one).size(); size <= most)
            width = std::max(width, size);
    std::string text = fmt::format("Usage: {} [OPTION]...\n\nOptions:\n", program);
    for (const doca_argp_param* one : parameters) {
        const std::string names = shown(*one);
        const char* mandatory = one->mandatory ? " (mandatory)" : "";
        if (names.size() > width)
            text += fmt::format("  {}\n  {:{}}  {}{}\n", names, "", width, one->description, mandatory);
        else
            text += fmt::format("  {:{}}  {}{}\n", names, width, one->description, mandatory);
    }
    return text;
}

} // namespace weftio::doca
