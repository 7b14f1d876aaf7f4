// weftio-files: what files can do here, how fast, and what a program does with them.
//
//   weftio-files --check /data
//   weftio-files bench -b 4k,1m --random /data
#include <cstdio>

#include "options.hpp"
#include "weftio/error.hpp"

namespace {

using namespace weftio::files;

/// Prints and flushes. Returns the exit status: 1 where standard output takes nothing.
int print(const std::string& text)
{
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
        return 0;
    std::fputs("weftio-files: standard output: cannot be written\n", stderr);
    return 1;
}

int run(const command& wanted)
{
    switch (wanted.what) {
        case command::action::check: {
            const std::vector<section> found = check(wanted.check);
            return print(wanted.json ? to_json(found) : to_text(found));
        }
        case command::action::bench:
        case command::action::stats:
        case command::action::say: break;
    }
    if (wanted.exit_code == 0)
        return print(wanted.text);
    std::fputs(wanted.text.c_str(), stderr);
    return wanted.exit_code;
}

} // namespace

int main(int argc, char** argv)
try {
    return run(parse_command_line(argc, argv));
} catch (const weftio::error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
