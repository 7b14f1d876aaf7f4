// A recorded machine: files and links as in /sys and /proc, in a temporary folder that the destructor removes.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace weftio::storage {

class recorded_machine {
 public:
    recorded_machine()
    {
        std::string name = std::filesystem::temp_directory_path() / "weftio_machine.XXXXXX";
        root_ = ::mkdtemp(name.data());
    }
    recorded_machine(const recorded_machine&) = delete;
    recorded_machine& operator=(const recorded_machine&) = delete;
    ~recorded_machine()
    {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }

    const std::filesystem::path& root() const { return root_; }

    recorded_machine& file(const std::string& name, std::string_view text)
    {
        std::filesystem::create_directories((root_ / name).parent_path());
        std::ofstream(root_ / name) << text;
        return *this;
    }
    /// Makes a link to a folder below the root, and the folder.
    recorded_machine& link(const std::string& name, const std::string& to)
    {
        std::filesystem::create_directories((root_ / name).parent_path());
        std::filesystem::create_directories(root_ / to);
        std::filesystem::create_directory_symlink(std::filesystem::relative(root_ / to, (root_ / name).parent_path()),
                                                  root_ / name);
        return *this;
    }
    /// Makes a PCI device. `path` is below sys/devices, such as "pci0000:00/0000:00:01.0/0000:01:00.0".
    recorded_machine& pci(const std::string& path, std::string_view vendor, std::string_view device_class, int numa)
    {
        const std::string folder = "sys/devices/" + path;
        file(folder + "/vendor", vendor).file(folder + "/class", device_class);
        file(folder + "/numa_node", std::to_string(numa));
        return link("sys/bus/pci/devices/" + path.substr(path.rfind('/') + 1), folder);
    }

 private:
    std::filesystem::path root_;
};

} // namespace weftio::storage
