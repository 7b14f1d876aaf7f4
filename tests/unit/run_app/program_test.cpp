#include "program.hpp"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "environment.hpp"
#include "options.hpp"

namespace weftio::test {

namespace {

namespace fs = std::filesystem;
using run::refusal;
using testing::HasSubstr;

/// A folder with programs.
class Program : public testing::Test {
 protected:
    Program()
    {
        std::string name = (fs::temp_directory_path() / "weftio-run.XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~Program() override { fs::remove_all(folder_); }

    std::string make(const std::string& name, const std::string& bytes, mode_t mode = 0755)
    {
        const std::string path = folder_ + "/" + name;
        std::ofstream(path, std::ios::binary) << bytes;
        ::chmod(path.c_str(), mode);
        return path;
    }

    std::string folder_;
};

template <class Call>
std::string words_of(int exit_code, Call call)
{
    try {
        call();
    } catch (const refusal& refused) {
        EXPECT_EQ(exit_code, refused.exit_code) << refused.what();
        return refused.what();
    }
    ADD_FAILURE() << "nothing was refused";
    return "";
}

std::string search(const std::string& name, const std::string& path)
{
    return words_of(run::no_program, [&] { run::find_program(name, path); });
}

/// A program for `machine` that names `linker`; none without.
std::string binary(Elf64_Half machine, const std::string& linker, unsigned char kind = ELFCLASS64)
{
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = kind;
    header.e_machine = machine;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    Elf64_Phdr parts[2]{};
    parts[0].p_type = PT_LOAD;
    parts[1].p_type = linker.empty() ? PT_NOTE : PT_INTERP;
    parts[1].p_offset = sizeof header + sizeof parts;
    parts[1].p_filesz = linker.size() + 1;
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes.append(reinterpret_cast<const char*>(parts), sizeof parts);
    return bytes + linker + '\0';
}

#if defined(__aarch64__)
constexpr Elf64_Half own_machine = EM_AARCH64, other_machine = EM_X86_64;
#else
constexpr Elf64_Half own_machine = EM_X86_64, other_machine = EM_AARCH64;
#endif
const std::string linker = "/lib64/ld-linux-x86-64.so.2";

TEST_F(Program, IsFoundAsShellsFindIt)
{
    make("tool", "", 0644);
    const std::string second = folder_ + "/second";
    fs::create_directory(second);
    const std::string path = make("second/tool", "");
    EXPECT_EQ(path, run::find_program("tool", folder_ + ":" + second)) << "not what may not be executed";
    EXPECT_EQ(path, run::find_program(path, ""));
    EXPECT_THAT(words_of(run::not_executable, [&] { run::find_program("tool", folder_); }),
                HasSubstr("/tool: is not executable"));
    EXPECT_EQ("nothing: no such program in PATH", search("nothing", folder_ + ":" + second));
    EXPECT_EQ(": no such program in PATH", search("", folder_));
    EXPECT_EQ(folder_ + "/nothing: No such file or directory", search(folder_ + "/nothing", ""));
    EXPECT_THAT(words_of(run::not_executable, [&] { run::find_program(folder_ + "/second", ""); }),
                HasSubstr("is a folder, not a program"));
    EXPECT_THAT(words_of(run::not_executable, [&] { run::find_program(folder_ + "/tool", ""); }),
                HasSubstr("is not executable"));
}

TEST_F(Program, OfTheWorkingDirectoryIsFoundByAnEmptyFolder)
{
    make("weftio-tool", "");
    const fs::path before = fs::current_path();
    fs::current_path(folder_);
    EXPECT_EQ("./weftio-tool", run::find_program("weftio-tool", "/weftio-nowhere:"));
    fs::current_path(before);
}

TEST_F(Program, ThatIsLinkedToGlibcIsStarted)
{
    EXPECT_NO_THROW(run::check_program(make("tool", binary(own_machine, linker))));
    EXPECT_NO_THROW(run::check_program("/proc/self/exe"));
    EXPECT_NO_THROW(run::check_program(make("ld-linux-x86-64.so.2", binary(own_machine, ""))));
    EXPECT_NO_THROW(run::check_program(make("words", "neither a binary nor a script\n")));
}

TEST_F(Program, ThatLoadsNoLibraryIsRefused)
{
    const auto words = [&](const std::string& bytes) {
        const std::string path = make("tool", bytes);
        return words_of(run::not_executable, [&] { run::check_program(path); });
    };
    EXPECT_THAT(words(binary(own_machine, "")), HasSubstr("/tool: is statically linked"));
    EXPECT_THAT(words(binary(own_machine, "/lib/ld-musl-x86_64.so.1")), HasSubstr("is linked to musl"));
    EXPECT_THAT(words(binary(other_machine, linker)), HasSubstr("another processor"));
    EXPECT_THAT(words(binary(own_machine, linker, ELFCLASS32)), HasSubstr("another processor"));
    EXPECT_THAT(words("\177ELF"), HasSubstr("has an incomplete ELF header"));
    EXPECT_THAT(words(binary(own_machine, linker).substr(0, 80)), HasSubstr("is statically linked"));
}

TEST_F(Program, WithRightsOfItsOwnIsRefused)
{
    const std::string path = make("tool", binary(own_machine, linker), 04755);
    EXPECT_NO_THROW(run::check_program(path)) << "its rights are its caller's";
    if (::getuid() != 0)
        GTEST_SKIP() << "a program of another user: only root can make one";
    ASSERT_EQ(0, ::chown(path.c_str(), 65534, 65534));
    ::chmod(path.c_str(), 04755);
    EXPECT_THAT(words_of(run::not_executable, [&] { run::check_program(path); }), HasSubstr("set-user-ID"));
    ::chmod(path.c_str(), 02755);
    EXPECT_THAT(words_of(run::not_executable, [&] { run::check_program(path); }), HasSubstr("set-group-ID"));
    ::chmod(path.c_str(), 0755);
    EXPECT_NO_THROW(run::check_program(path));
}

TEST_F(Program, ThatIsAScriptIsJudgedByItsInterpreter)
{
    const std::string interpreter = make("interpreter", binary(own_machine, ""));
    const std::string script = make("script", "#! " + interpreter + " -x\necho\n"),
                      outer = make("outer", "#!" + script + "\n");
    EXPECT_THAT(words_of(run::not_executable, [&] { run::check_program(script); }),
                HasSubstr("/interpreter: is statically linked"));
    EXPECT_THAT(words_of(run::not_executable, [&] { run::check_program(outer); }),
                HasSubstr("/interpreter: is statically linked"));
    EXPECT_NO_THROW(run::check_program(make("shell", "#!/bin/sh\n")));
    EXPECT_THAT(words_of(run::not_executable, [&] { run::check_program(make("lost", "#!/weftio-nowhere/sh\n")); }),
                HasSubstr("/weftio-nowhere/sh: No such file or directory"));
    const std::string loop = make("loop", "#!" + folder_ + "/loop\n");
    EXPECT_NO_THROW(run::check_program(loop)) << "Linux refuses it";
}

TEST(Preload, IsInFrontOfWhatIsThere)
{
    EXPECT_EQ("/a.so", run::preload_with("/a.so", ""));
    EXPECT_EQ("/a.so:/b.so:/c.so", run::preload_with("/a.so", "/b.so /c.so"));
    EXPECT_EQ("/a.so:/b.so", run::preload_with("/a.so", "/b.so:/a.so:")) << "once";
}

TEST_F(Program, NeedsItsLibraries)
{
    fs::create_directories(folder_ + "/bin");
    const auto find = [&] { return run::find_library(folder_ + "/bin"); };
    EXPECT_THAT(
        words_of(run::own_failure, find),
        testing::AllOf(HasSubstr("libweftio-verbs-preload.so does not exist (searched " + folder_ + "/lib/verbs, "),
                       HasSubstr(folder_ + "/lib/weftio"), HasSubstr("install it again")));
    fs::create_directories(folder_ + "/lib/weftio");
    make("lib/weftio/libweftio-verbs-preload.so", "");
    EXPECT_THAT(words_of(run::own_failure, find), HasSubstr("/lib/weftio/libweftio-verbs.so does not exist"));
    make("lib/weftio/libweftio-verbs.so", "");
    EXPECT_EQ(folder_ + "/lib/weftio/libweftio-verbs-preload.so", find());
    fs::rename(folder_ + "/lib", folder_ + "/bin/lib");
    fs::create_directories(folder_ + "/a b/bin");
    fs::rename(folder_ + "/bin/lib", folder_ + "/a b/lib");
    EXPECT_THAT(words_of(run::own_failure, [&] { run::find_library(folder_ + "/a b/bin"); }),
                HasSubstr("a space or a colon cannot be preloaded"));
}

} // namespace
} // namespace weftio::test
