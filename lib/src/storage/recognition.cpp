#include "storage/recognition.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace weftio::storage {

namespace {

namespace fs = std::filesystem;

std::string line_of(const fs::path& file)
{
    std::string line;
    std::ifstream in(file);
    std::getline(in, line);
    return line;
}

/// First line that has `text`; empty: none.
std::string line_with(const fs::path& file, std::string_view text)
{
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
        if (line.find(text) != std::string::npos)
            return line;
    return {};
}

bool has_entries(const fs::path& folder)
{
    std::error_code ignored;
    return fs::directory_iterator(folder, ignored) != fs::directory_iterator();
}

/// Undoes the \040 of /proc/self/mountinfo.
std::string plain(std::string_view text)
{
    std::string made;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escape = text[i] == '\\' && i + 3 < text.size() + 0 && text[i + 1] >= '0' && text[i + 1] <= '3';
        if (!escape) {
            made += text[i];
            continue;
        }
        made += static_cast<char>(std::strtol(std::string(text.substr(i + 1, 3)).c_str(), nullptr, 8));
        i += 3;
    }
    return made;
}

void read_nvidia(const fs::path& root, system_facts& to)
{
    const std::string line = line_with(root / "proc/driver/nvidia/version", "NVRM version");
    std::istringstream words(line);
    for (std::string word; words >> word;)
        if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) {
            to.nvidia_driver = word;
            to.nvidia_branch = static_cast<unsigned>(std::atoi(word.c_str()));
            break;
        }
    to.nvidia_open = line.find("Open Kernel Module") != std::string::npos;
    to.nvidia_static_bar1 = !line_with(root / "proc/driver/nvidia/params", "RMForceStaticBar1=1").empty();
    const std::string version = line_with(root / "proc/driver/nvidia-fs/version", "version");
    if (const std::size_t colon = version.find(": "); colon != std::string::npos)
        to.nvidia_fs = version.substr(colon + 2);
    else if (!line_with(root / "proc/modules", "nvidia_fs ").empty())
        to.nvidia_fs = "loaded";
}

/// Adds the drives below a block device, down through RAID, device mapper and loops.
void add_drives(const fs::path& root, const fs::path& block, place_facts& to, unsigned depth = 0)
{
    std::error_code failed;
    fs::path real = fs::canonical(block, failed);
    if (failed || depth == 8)
        return;
    if (fs::exists(real / "partition", failed))
        real = real.parent_path();
    if (fs::exists(real / "loop", failed))
        to.raid = "loop";
    if (has_entries(real / "slaves")) {
        const std::string level = line_of(real / "md/level");
        to.raid = level.empty() ? "device mapper" : level;
        for (const auto& below : fs::directory_iterator(real / "slaves", failed))
            add_drives(root, below.path(), to, depth + 1);
        return;
    }
    to.multipath = to.multipath || real.string().find("/nvme-subsystem/") != std::string::npos;
    const std::string name = real.filename();
    if (std::find(to.drives.begin(), to.drives.end(), name) == to.drives.end())
        to.drives.push_back(name);
}

/// What is known of a kind of file system: whether it has O_DIRECT.
std::optional<bool> o_direct_of(std::string_view file_system, unsigned kernel_version)
{
    constexpr std::array with{"ext4",   "ext3", "ext2",   "xfs",    "btrfs", "f2fs",  "nfs",  "nfs4",
                              "lustre", "gpfs", "beegfs", "wekafs", "ceph",  "ocfs2", "gfs2", "zonefs"};
    constexpr std::array without{"proc", "sysfs", "ramfs", "squashfs", "cgroup2", "devpts", "devtmpfs", "iso9660"};
    if (std::find(with.begin(), with.end(), file_system) != with.end())
        return true;
    if (std::find(without.begin(), without.end(), file_system) != without.end())
        return false;
    if (file_system == "tmpfs" && kernel_version != 0)
        return kernel_version >= 606;
    return {};
}

unsigned version_of(const std::string& release)
{
    unsigned major = 0, minor = 0;
    char dot = 0;
    std::istringstream(release) >> major >> dot >> minor;
    return major * 100 + minor;
}

} // namespace

system_facts read_system(const fs::path& root)
{
    system_facts made;
    std::error_code failed;
    made.kernel = line_of(root / "proc/sys/kernel/osrelease");
    made.kernel_version = version_of(made.kernel);
    made.machine = line_of(root / "proc/sys/kernel/arch");
    if (std::ifstream(root / "proc/kallsyms").peek() != std::ifstream::traits_type::eof())
        made.p2pdma = !line_with(root / "proc/kallsyms", "p2pdma_pgmap_ops").empty();
    read_nvidia(root, made);
    const std::string command_line = line_of(root / "proc/cmdline");
    made.iommu = has_entries(root / "sys/class/iommu") && command_line.find("iommu=pt") == std::string::npos &&
                 command_line.find("iommu.passthrough=1") == std::string::npos;
    if (const std::string denied = line_of(root / "proc/sys/kernel/io_uring_disabled"); !denied.empty())
        made.uring_denied = std::atoi(denied.c_str());
    made.udev = fs::exists(root / "run/udev", failed);
    return made;
}

std::vector<mount_entry> read_mounts(const fs::path& root)
{
    std::vector<mount_entry> made;
    std::ifstream in(root / "proc/self/mountinfo");
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string skip, below;
        mount_entry entry;
        words >> entry.id >> skip >> entry.device >> below >> entry.point >> entry.options;
        while (words >> skip && skip != "-") {
        }
        words >> entry.file_system >> entry.source >> entry.super_options;
        entry.point = plain(entry.point);
        entry.source = plain(entry.source);
        if (!entry.file_system.empty())
            made.push_back(std::move(entry));
    }
    return made;
}

const mount_entry* mount_of(const std::vector<mount_entry>& mounts, std::string_view path)
{
    const mount_entry* best = nullptr;
    for (const mount_entry& entry : mounts) {
        const std::string& point = entry.point;
        const bool inside = point == "/" || (path.substr(0, point.size()) == point &&
                                             (path.size() == point.size() || path[point.size()] == '/'));
        if (inside && (!best || point.size() >= best->point.size()))
            best = &entry;
    }
    return best;
}

std::optional<mount_entry> mount_of_descriptor(const fs::path& root, int descriptor)
{
    const std::string line = line_with(root / "proc/self/fdinfo" / std::to_string(descriptor), "mnt_id:");
    std::string skip, id;
    std::istringstream(line) >> skip >> id;
    for (mount_entry& entry : read_mounts(root))
        if (!id.empty() && entry.id == id)
            return std::move(entry);
    return {};
}

std::string find_vendor_library(const fs::path& root)
{
    std::error_code ignored;
    for (const char* folder :
         {"usr/local/cuda/lib64", "usr/local/cuda/targets/x86_64-linux/lib", "usr/local/cuda/targets/sbsa-linux/lib",
          "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu"})
        if (const fs::path path = root / folder / "libcufile.so.0"; fs::exists(path, ignored))
            return path;
    return {};
}

place_facts recognize(const fs::path& root, const mount_entry& mount)
{
    place_facts made{.mount = mount};
    std::error_code failed;
    fs::path block = root / "sys/dev/block" / mount.device;
    if (!fs::exists(block, failed) && mount.source.compare(0, 5, "/dev/") == 0)
        block = root / "sys/class/block" / fs::path(mount.source).filename();
    if (fs::exists(block, failed))
        add_drives(root, block, made);
    made.o_direct = o_direct_of(mount.file_system, version_of(line_of(root / "proc/sys/kernel/osrelease")));
    made.o_direct_why = "by the kind of file system";
    return made;
}

std::optional<bool> try_o_direct(const std::string& path)
{
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
        return {};
    const int way = S_ISDIR(status.st_mode) ? O_TMPFILE | O_RDWR : S_ISREG(status.st_mode) ? O_RDONLY : -1;
    if (way < 0)
        return {};
    const int file = ::open(path.c_str(), way | O_DIRECT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (file >= 0)
        ::close(file);
    else if (errno != EINVAL || S_ISDIR(status.st_mode))
        return {}; // EINVAL of a folder may mean that it has no files without a name
    return file >= 0;
}

bool is_local(std::string_view file_system) noexcept
{
    constexpr std::array local{"ext4", "ext3", "ext2", "xfs", "btrfs", "f2fs"};
    return std::find(local.begin(), local.end(), file_system) != local.end();
}

} // namespace weftio::storage
