#include "argp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "doca_log.h"
#include "doca_version.h"
#include "log.hpp"
#include "object.hpp"

namespace weftio::doca {
namespace {

struct parser {
    std::string program;
    void* configuration;
    std::vector<std::shared_ptr<doca_argp_param>> parameters; ///< in the order of registration
    doca_argp_ver_cb_t version = nullptr;
};

// Never destroyed, as the parameters are not.
std::optional<parser>& parser_or_none()
{
    static auto* one = new std::optional<parser>;
    return *one;
}

parser& begun_parser()
{
    require(parser_or_none().has_value(), DOCA_ERROR_BAD_STATE, "doca_argp_init() was not called");
    return *parser_or_none();
}

[[noreturn]] void end_with(std::string_view text)
{
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    std::exit(0);
}

std::vector<const doca_argp_param*> all_of_them(const parser& from);

// Options of every program.
doca_error_t show_help(void* value, void*)
{
    if (!*static_cast<bool*>(value))
        return DOCA_SUCCESS;
    end_with(help_of(begun_parser().program, all_of_them(begun_parser())));
}

doca_error_t show_version(void* value, void*)
{
    if (!*static_cast<bool*>(value))
        return DOCA_SUCCESS;
    if (!begun_parser().version)
        end_with(fmt::format("DOCA {}\n", doca_version_runtime()));
    const doca_error_t error = begun_parser().version(nullptr, begun_parser().configuration);
    if (error == DOCA_SUCCESS)
        end_with("");
    return error;
}

doca_error_t set_program_level(void* value, void*)
{
    return doca_log_level_set_global_lower_limit(static_cast<std::uint32_t>(*static_cast<int*>(value)));
}

doca_error_t set_library_level(void* value, void*)
{
    return doca_log_level_set_global_sdk_limit(static_cast<std::uint32_t>(*static_cast<int*>(value)));
}

const std::vector<doca_argp_param>& options_of_every_program()
{
    static const auto* options = new std::vector<doca_argp_param>{
        {"h", "help", "", "Print this help and end", show_help, DOCA_ARGP_TYPE_BOOLEAN},
        {"v", "version", "", "Print the version and end", show_version, DOCA_ARGP_TYPE_BOOLEAN},
        {"l", "log-level", "<level>",
         "Log of the program: 10 none, 20 critical, 30 error, 40 warning, 50 info, 60 debug, 70 trace",
         set_program_level, DOCA_ARGP_TYPE_INT},
        {"", "sdk-log-level", "<level>", "Log of the library: likewise", set_library_level, DOCA_ARGP_TYPE_INT},
    };
    return *options;
}

/// The program's first: they win where names are the same.
std::vector<const doca_argp_param*> all_of_them(const parser& from)
{
    std::vector<const doca_argp_param*> all;
    for (auto& one : from.parameters)
        all.push_back(one.get());
    for (auto& one : options_of_every_program())
        all.push_back(&one);
    return all;
}

bool share_a_name(const doca_argp_param& one, const doca_argp_param& other)
{
    return (!one.short_name.empty() && one.short_name == other.short_name) ||
           (!one.long_name.empty() && one.long_name == other.long_name);
}

/// Help and version do not ask for mandatory options.
bool ends_the_program(const given_option& option)
{
    const bool is_one = option.parameter->callback == show_help || option.parameter->callback == show_version;
    return is_one && std::get<bool>(option.value);
}

void require_mandatory(const parser& from, const std::vector<given_option>& given)
{
    for (auto& one : from.parameters)
        require(!one->mandatory ||
                    std::any_of(given.begin(), given.end(),
                                [&](const given_option& option) { return option.parameter == one.get(); }),
                DOCA_ERROR_INVALID_VALUE, "option {} is missing", shown(*one));
}

doca_error_t pass_on(given_option& option, void* configuration)
{
    return std::visit(
        [&](auto& value) {
            if constexpr (std::is_pointer_v<std::remove_reference_t<decltype(value)>>)
                return option.parameter->callback(value, configuration);
            else
                return option.parameter->callback(&value, configuration);
        },
        option.value);
}

/// @throws failure
void read_command_line(const parser& from, int argc, char** argv)
{
    auto given = options_in(argc, argv, all_of_them(from));
    auto ending = std::find_if(given.begin(), given.end(), ends_the_program);
    if (ending != given.end())
        std::rotate(given.begin(), ending, ending + 1);
    else
        require_mandatory(from, given);
    for (given_option& option : given) {
        const doca_error_t error = pass_on(option, from.configuration);
        require(error == DOCA_SUCCESS, error, "option {}: {}", shown(*option.parameter), doca_error_get_descr(error));
    }
}

template <class Setter>
void set(const char* function, doca_argp_param* parameter, Setter&& setter)
{
    call_in_any_process(function, [&] { setter(*known(parameter)); });
}

std::string text_of(const char* text)
{
    require(text, DOCA_ERROR_INVALID_VALUE, "the text is a null pointer");
    return text;
}

} // namespace
} // namespace weftio::doca

using namespace weftio::doca;

doca_error_t doca_argp_init(const char* program_name, void* configuration)
{
    return call_in_any_process(__func__, [&] {
        std::string name = text_of(program_name);
        require(!parser_or_none(), DOCA_ERROR_BAD_STATE, "doca_argp_init() was called already");
        parser_or_none().emplace(parser{std::move(name), configuration, {}});
    });
}

doca_error_t doca_argp_start(int argc, char** argv)
{
    doca_error_t refused = DOCA_SUCCESS;
    const doca_error_t error = call_in_any_process(__func__, [&] {
        const parser from = begun_parser(); // a callback may call doca_argp_destroy()
        require(argv && argc >= 0, DOCA_ERROR_INVALID_VALUE, "argv is a null pointer, or argc negative");
        try {
            read_command_line(from, argc, argv);
        } catch (const failure& reason) { // for people at a terminal, whatever the log's level is
            fmt::print(stderr, "{}: {}; see {} --help\n", from.program, reason.text, from.program);
            refused = reason.code;
        }
    });
    return error == DOCA_SUCCESS ? refused : error;
}

doca_error_t doca_argp_destroy(void)
{
    return call_in_any_process(__func__, [&] {
        for (auto& one : begun_parser().parameters)
            living<doca_argp_param>::remove(one.get());
        parser_or_none().reset();
    });
}

doca_error_t doca_argp_param_create(struct doca_argp_param** param)
{
    return call_in_any_process(__func__, [&] { make(param); });
}

void doca_argp_param_set_short_name(struct doca_argp_param* param, const char* name)
{
    set(__func__, param, [&](doca_argp_param& one) { one.short_name = text_of(name); });
}

void doca_argp_param_set_long_name(struct doca_argp_param* param, const char* name)
{
    set(__func__, param, [&](doca_argp_param& one) { one.long_name = text_of(name); });
}

void doca_argp_param_set_arguments(struct doca_argp_param* param, const char* arguments)
{
    set(__func__, param, [&](doca_argp_param& one) { one.arguments = text_of(arguments); });
}

void doca_argp_param_set_description(struct doca_argp_param* param, const char* description)
{
    set(__func__, param, [&](doca_argp_param& one) { one.description = text_of(description); });
}

void doca_argp_param_set_callback(struct doca_argp_param* param, doca_argp_param_cb_t callback)
{
    set(__func__, param, [&](doca_argp_param& one) {
        require(callback, DOCA_ERROR_INVALID_VALUE, "the callback is a null pointer");
        one.callback = callback;
    });
}

void doca_argp_param_set_type(struct doca_argp_param* param, enum doca_argp_type type)
{
    set(__func__, param, [&](doca_argp_param& one) {
        require(type >= DOCA_ARGP_TYPE_STRING && type <= DOCA_ARGP_TYPE_BOOLEAN, DOCA_ERROR_INVALID_VALUE,
                "type {}: no such type", static_cast<int>(type));
        one.type = type;
    });
}

void doca_argp_param_set_mandatory(struct doca_argp_param* param)
{
    set(__func__, param, [](doca_argp_param& one) { one.mandatory = true; });
}

doca_error_t doca_argp_register_param(struct doca_argp_param* param)
{
    return call_in_any_process(__func__, [&] {
        auto one = known(param);
        auto& parameters = begun_parser().parameters;
        require(!one->short_name.empty() || !one->long_name.empty(), DOCA_ERROR_INVALID_VALUE,
                "the parameter has no name");
        require(one->type != DOCA_ARGP_TYPE_UNKNOWN, DOCA_ERROR_INVALID_VALUE, "parameter {} has no type", shown(*one));
        require(one->callback, DOCA_ERROR_INVALID_VALUE, "parameter {} has no callback", shown(*one));
        for (auto& other : parameters)
            require(other != one && !share_a_name(*other, *one), DOCA_ERROR_ALREADY_EXIST,
                    "parameter {}: {} is registered already", shown(*one), shown(*other));
        parameters.push_back(std::move(one));
    });
}

doca_error_t doca_argp_register_version_callback(doca_argp_ver_cb_t callback)
{
    return call_in_any_process(__func__, [&] {
        require(callback, DOCA_ERROR_INVALID_VALUE, "the callback is a null pointer");
        begun_parser().version = callback;
    });
}
