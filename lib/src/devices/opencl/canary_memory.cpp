// Keeps the canary's verdicts: for the process, and for later ones in a file.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "devices/opencl/canary.hpp"
#include "weftio/error.hpp"

namespace weftio::devices::opencl {

namespace {

struct named_method {
    build_method method;
    std::string_view name;
};
constexpr named_method methods[] = {
    {build_method::plain, "plain"}, {build_method::unoptimized, "text unoptimized"}, {build_method::cbs, "cbs"}};
constexpr std::string_view none = "none";

std::string variable(const char* name)
{
    const char* value = std::getenv(name);
    return value ? value : "";
}

/// FNV-1a.
std::uint64_t hash_of(std::string_view text)
{
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char letter : text)
        hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
    return hash;
}

/// Everything that the verdict depends on, in one line.
std::string question(const found_device& device)
{
    std::string text =
        fmt::format("{:016x} {} | {} | {}", hash_of(canary_source(build_method::plain)), device.facts.name,
                    device.device.getInfo<CL_DRIVER_VERSION>(), device.device.getInfo<CL_DEVICE_VERSION>());
    text += fmt::format(" | {}", method_of_user());
    for (const char* name : {"POCL_FULL_REPLICATION_THRESHOLD", "POCL_EXTRA_BUILD_FLAGS"})
        text += fmt::format(" | {}", variable(name));
    for (const named_method& each : methods) // another version of the library may know other methods
        text += fmt::format(" | {}", each.name);
    return text;
}

/// The file for a question; empty if there is no cache folder.
std::filesystem::path file_of(const std::string& question)
{
    std::filesystem::path folder = variable("XDG_CACHE_HOME");
    if (folder.empty() && !variable("HOME").empty())
        folder = std::filesystem::path(variable("HOME")) / ".cache";
    if (!folder.is_absolute())
        return {};
    return folder / "weftio" / fmt::format("opencl-barriers-{:016x}", hash_of(question));
}

bool is_an_answer(std::string_view text)
{
    return text == none || std::ranges::any_of(methods, [&](const named_method& each) { return each.name == text; });
}

/// Returns the second line of the file if the first is the question.
std::string recall(const std::filesystem::path& path, const std::string& question)
{
    std::ifstream file(path);
    std::string asked, answer;
    if (std::getline(file, asked) && std::getline(file, answer) && asked == question && is_an_answer(answer))
        return answer;
    return {};
}

/// Best effort: a process that cannot write tests again next time.
void remember(const std::filesystem::path& path, const std::string& question, std::string_view answer)
{
    std::error_code ignored;
    std::filesystem::create_directories(path.parent_path(), ignored);
    const std::filesystem::path fresh = fmt::format("{}.{}", path.string(), getpid());
    {
        std::ofstream file(fresh);
        if (!(file << question << '\n' << answer << '\n').flush()) {
            std::filesystem::remove(fresh, ignored);
            return;
        }
    }
    std::filesystem::rename(fresh, path, ignored); // atomic: readers see a whole file or none
}

/// Runs the canary with each method. Returns the name of the first that works.
std::string_view ask(const found_device& device, unsigned index)
{
    const bool may_set_method = device.facts.pocl && method_of_user().empty();
    for (const auto& [method, name] : methods)
        if ((method != build_method::cbs || may_set_method) && runs_canary(index, method))
            return name;
    return none;
}

std::string answer_to(const std::string& question, const found_device& device, unsigned index)
{
    const std::filesystem::path path = file_of(question);
    if (std::string known = path.empty() ? "" : recall(path, question); !known.empty())
        return known;
    std::string answer(ask(device, index));
    if (!path.empty())
        remember(path, question, answer);
    return answer;
}

[[noreturn]] void refuse(const found_device& device)
{
    throw error(
        errc::not_supported,
        fmt::format("weftio: opencl: driver {} of device \"{}\" miscompiles barriers behind conditions with every "
                    "build method, so kernels of several lanes would give wrong results; use cpu, or another driver",
                    device.device.getInfo<CL_DRIVER_VERSION>(), device.facts.name));
}

} // namespace

build_method choose_build(const found_device& device, unsigned index)
{
    static std::mutex mutex;
    static std::map<std::string, std::string> answers;
    std::lock_guard lock(mutex);
    const std::string asked = question(device);
    auto known = answers.find(asked);
    if (known == answers.end())
        known = answers.emplace(asked, answer_to(asked, device, index)).first;
    for (const auto& [method, name] : methods)
        if (known->second == name) {
            if (method == build_method::cbs)
                set_cbs();
            return method;
        }
    refuse(device);
}

} // namespace weftio::devices::opencl
