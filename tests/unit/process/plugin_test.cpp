// Several copies of the library in one process: the program's own, and those of plug-ins that come and go.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "plugin/plugin.hpp"
#include "scene.hpp"
#include "stage.hpp"

namespace {

using namespace std::chrono_literals;
using weftio::test::ends_well, weftio::test::scene, weftio::test::scene_argument, weftio::test::stage;

class plugin {
 public:
    /// @param name  "a" or "b", which are copies of each other
    explicit plugin(const std::string& name)
        : library_(dlopen(
              (std::filesystem::read_symlink("/proc/self/exe").parent_path() / ("libplugin_" + name + ".so")).c_str(),
              RTLD_NOW | RTLD_LOCAL))
    {
        if (!library_)
            std::puts(dlerror());
    }
    plugin(const plugin&) = delete;
    plugin& operator=(const plugin&) = delete;
    ~plugin() { unload(); }

    void unload()
    {
        if (library_)
            dlclose(library_);
        library_ = nullptr;
    }
    bool open(const char* spec) const { return function<decltype(plugin_open)>("plugin_open")(spec); }
    bool sends() const { return function<decltype(plugin_sends)>("plugin_sends")(); }
    void close() const { function<decltype(plugin_close)>("plugin_close")(); }
    bool survives_unmapped_memory() const
    {
        return function<decltype(plugin_survives_unmapped_memory)>("plugin_survives_unmapped_memory")();
    }

 private:
    template <class Function>
    Function* function(const char* name) const
    {
        return reinterpret_cast<Function*>(dlsym(library_, name));
    }

    void* library_;
};

/// Each sends while the others do, and each notices its own unmapped memory.
const scene three_copies("three_copies", [] {
    plugin a("a"), b("b");
    if (!a.open("net_null_a") || !b.open("net_null_b"))
        return 1;
    stage own("null");
    if (!own.send(40) || !a.sends() || !b.sends())
        return 2;
    if (!a.survives_unmapped_memory() || !b.survives_unmapped_memory())
        return 4;
    std::this_thread::sleep_for(2500ms); // each has put its handler in front again and again
    if (!a.survives_unmapped_memory() || !b.survives_unmapped_memory())
        return 6;
    a.close();
    return own.send(40) && b.sends() ? 3 : 5;
});

const scene exit_with_copies_open("exit_with_copies_open", [] {
    static plugin a("a"), b("b");
    static stage own("null");
    return a.open("net_null_a") && b.open("net_null_b") && own.run() ? 3 : 1;
});

const scene plugin_comes_and_goes("plugin_comes_and_goes", [] {
    for (int time = 0; time < 3; ++time) {
        plugin a("a");
        if (!a.open("net_null_a") || !a.sends() || !a.survives_unmapped_memory())
            return 1;
        a.close();
    }
    plugin b("b");
    return b.open("net_null_a") && b.sends() ? 3 : 2;
});

/// Nothing of it has needed DPDK, which keeps a library loaded.
const scene plugin_without_a_port("plugin_without_a_port", [] {
    for (int time = 0; time < 3; ++time)
        if (plugin a("a"); !a.survives_unmapped_memory())
            return 1;
    stage own("null");
    return own.send(40) ? 3 : 2;
});

/// With its port open and kernels running.
const scene plugin_unloaded_in_use("plugin_unloaded_in_use", [] {
    plugin a("a");
    if (!a.open("net_null_a"))
        return 1;
    a.unload();
    stage own("null");
    return own.send(40) ? 3 : 2;
});

TEST(ProcessPlugins, SendBesideEachOtherAndBesideTheProgram)
{
    ends_well("three_copies", "", 3, 3);
}

TEST(ProcessPlugins, MayBeInUseWhenTheProgramEnds)
{
    ends_well("exit_with_copies_open", "", 3, 3);
}

TEST(ProcessPlugins, ComeAndGo)
{
    ends_well("plugin_comes_and_goes", "", 3, 2);
    ends_well("plugin_without_a_port", "", 3, 2);
    ends_well("plugin_unloaded_in_use", "", 3, 2);
}

} // namespace
