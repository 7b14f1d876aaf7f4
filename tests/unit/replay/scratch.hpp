// Temporary files of a test, removed at its end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace weftio::replay::test {

class scratch {
 public:
    scratch()
    {
        std::string name = (std::filesystem::temp_directory_path() / "replay_test.XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;
    ~scratch() { std::filesystem::remove_all(folder_); }

    std::string path(const std::string& name) const { return folder_ + "/" + name; }
    std::string write(const std::string& name, const std::string& content) const
    {
        std::ofstream(path(name), std::ios::binary) << content;
        return path(name);
    }
    std::string read(const std::string& name) const
    {
        std::ifstream file(path(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

 private:
    std::string folder_;
};

} // namespace weftio::replay::test
