#include "program.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "options.hpp"

namespace weftio::run {

namespace {

namespace fs = std::filesystem;

#if defined(__x86_64__)
constexpr Elf64_Half own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half own_machine = EM_AARCH64;
#else
constexpr Elf64_Half own_machine = EM_NONE; // any
#endif

[[noreturn]] void refuse(const std::string& path, std::string_view why)
{
    throw refusal(not_executable, fmt::format("{}: {}", path, why));
}

bool is_executable_file(const std::string& path)
{
    std::error_code error;
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

/// Bytes [from, from + count) of a file; fewer where it ends.
std::string read_part(std::ifstream& file, std::uint64_t from, std::size_t count)
{
    std::string bytes(count, 0);
    file.clear();
    file.seekg(static_cast<std::streamoff>(from));
    file.read(bytes.data(), static_cast<std::streamsize>(count));
    bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return bytes;
}

template <class Structure>
std::optional<Structure> structure_at(std::ifstream& file, std::uint64_t from)
{
    const std::string bytes = read_part(file, from, sizeof(Structure));
    Structure structure;
    if (bytes.size() != sizeof structure)
        return {};
    std::memcpy(&structure, bytes.data(), sizeof structure);
    return structure;
}

/// The dynamic linker that a program names; empty for a statically linked one.
std::string linker_of(std::ifstream& file, const Elf64_Ehdr& header)
{
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        const auto part = structure_at<Elf64_Phdr>(file, header.e_phoff + std::uint64_t{i} * header.e_phentsize);
        if (part && part->p_type == PT_INTERP) {
            const std::string text = read_part(file, part->p_offset, std::min<std::uint64_t>(part->p_filesz, 4096));
            return text.substr(0, text.find('\0'));
        }
    }
    return {};
}

/// Whether the file is a dynamic linker itself, which loads what is preloaded.
bool is_linker(const std::string& path)
{
    const std::string name = fs::path(path).filename().string();
    return name.starts_with("ld-linux") || name.starts_with("ld.so") || name.starts_with("ld-2.");
}

void check_binary(const std::string& path, std::ifstream& file)
{
    const auto header = structure_at<Elf64_Ehdr>(file, 0);
    if (!header)
        refuse(path, "has an incomplete ELF header");
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || (own_machine != EM_NONE && header->e_machine != own_machine))
        refuse(path, "is for another processor than Weftio's libraries; it would see no devices");
    const std::string linker = linker_of(file, *header);
    if (linker.empty() && !is_linker(path))
        refuse(path, "is statically linked, so it cannot preload a library and would see no devices; link it to "
                     "libc.so and libibverbs.so");
    if (linker.find("ld-musl") != linker.npos)
        refuse(path, "is linked to musl, but Weftio's libraries are linked to glibc; it would see no devices");
}

/// Of "#!/usr/bin/env python3": /usr/bin/env.
std::string interpreter_in(const std::string& first_line)
{
    const std::size_t from = first_line.find_first_not_of(" \t", 2);
    if (from == first_line.npos)
        return {};
    return first_line.substr(from, first_line.find_first_of(" \t\n", from) - from);
}

/// Whether it runs with rights that this process does not have: the dynamic linker ignores LD_PRELOAD then.
void check_rights(const std::string& path)
{
    struct stat file;
    if (::stat(path.c_str(), &file) != 0)
        refuse(path, std::strerror(errno));
    const bool sets_user = (file.st_mode & S_ISUID) != 0 && file.st_uid != ::getuid();
    const bool sets_group = (file.st_mode & S_ISGID) != 0 && (file.st_mode & S_IXGRP) != 0 && file.st_gid != ::getgid();
    const bool has_capabilities = ::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
    if (sets_user || sets_group || has_capabilities)
        refuse(path, fmt::format("runs with its own rights ({}), so it cannot preload a library and would see no "
                                 "devices; start a copy of it without them",
                                 sets_user    ? "set-user-ID"
                                 : sets_group ? "set-group-ID"
                                              : "file capabilities"));
}

void check_at_depth(const std::string& path, unsigned depth)
{
    std::ifstream file(path, std::ios::binary);
    const std::string start = read_part(file, 0, 256);
    if (start.starts_with("#!") && depth < 5) { // as deep as Linux goes
        if (const std::string interpreter = interpreter_in(start); !interpreter.empty())
            return check_at_depth(interpreter, depth + 1);
    }
    check_rights(path);
    if (start.starts_with(ELFMAG))
        check_binary(path, file);
}

} // namespace

std::string find_program(const std::string& name, std::string_view path)
{
    if (name.find('/') != name.npos) {
        if (::access(name.c_str(), F_OK) != 0)
            throw refusal(errno == EACCES ? not_executable : no_program,
                          fmt::format("{}: {}", name, std::strerror(errno)));
        if (!is_executable_file(name))
            refuse(name, fs::is_directory(name) ? "is a folder, not a program" : "is not executable");
        return name;
    }
    std::string seen; // that may not be executed
    for (std::size_t at = 0; !name.empty() && at <= path.size();) {
        const std::size_t end = std::min(path.find(':', at), path.size());
        const std::string folder(path.substr(at, end - at));
        std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
        if (is_executable_file(candidate))
            return candidate;
        std::error_code error;
        if (seen.empty() && fs::is_regular_file(candidate, error))
            seen = candidate;
        at = end + 1;
    }
    if (!seen.empty())
        refuse(seen, "is not executable");
    throw refusal(no_program, fmt::format("{}: no such program in PATH", name));
}

void check_program(const std::string& path)
{
    check_at_depth(path, 0);
}

} // namespace weftio::run
