// An ordinary file, which belongs to no device.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace weftio::test {

/// A folder for temporary files with one file, "file", and a symbolic link to it, "link".
class ordinary_file {
 public:
    ordinary_file()
    {
        std::string name = (std::filesystem::temp_directory_path() / "weftio-preload.XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
        std::ofstream(path()) << "plain";
        std::filesystem::create_symlink("file", link());
    }
    ordinary_file(const ordinary_file&) = delete;
    ordinary_file& operator=(const ordinary_file&) = delete;
    ~ordinary_file() { std::filesystem::remove_all(folder_); }

    const std::string& folder() const { return folder_; }
    std::string path() const { return folder_ + "/file"; }
    std::string link() const { return folder_ + "/link"; }

 private:
    std::string folder_;
};

} // namespace weftio::test
