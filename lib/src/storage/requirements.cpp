#include "storage/requirements.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weftio::storage {

namespace {

using state = requirement::state;

/// A requirement from what was found.
requirement need(std::string_view name, bool there, std::string_view found, std::string_view remedy)
{
    return {std::string(name), there ? state::present : state::missing, std::string(found),
            there ? "" : std::string(remedy)};
}

requirement of_mount(requirement made)
{
    made.of_mount = true;
    return made;
}

bool is_nvme(const place_facts& place)
{
    return !place.drives.empty() && std::all_of(place.drives.begin(), place.drives.end(), [](const std::string& drive) {
        return drive.compare(0, 4, "nvme") == 0;
    });
}

requirement needs_driver(const system_facts& system)
{
    return need("NVIDIA driver", !system.nvidia_driver.empty(),
                system.nvidia_driver.empty() ? "none" : system.nvidia_driver,
                "install the driver; in a container, start it with the GPUs");
}

requirement needs_o_direct(const place_facts& place)
{
    requirement made = need("O_DIRECT", place.o_direct.value_or(false),
                            fmt::format("{} {}", place.mount.file_system, place.o_direct_why),
                            "put the files on a file system with O_DIRECT, such as ext4 or xfs");
    if (!place.o_direct) {
        made.is = state::unknown;
        made.remedy = "name a file or a writable folder of the mount to test it";
    }
    return made;
}

requirement needs_iommu_off(const system_facts& system)
{
    return need("IOMMU off or in passthrough", !system.iommu, system.iommu ? "translating" : "does not translate",
                "boot with iommu=pt, or turn the IOMMU off");
}

direct_option p2pdma(const system_facts& system, const place_facts& place)
{
    direct_option made{.name = "PCI P2PDMA"};
    made.needs.push_back(needs_driver(system));
    made.needs.push_back(need("NVIDIA driver 570 or later (CUDA 12.8)", system.nvidia_branch >= 570,
                              system.nvidia_driver.empty() ? "none" : system.nvidia_driver, "update the driver"));
    made.needs.push_back(need("open kernel modules", system.nvidia_open,
                              system.nvidia_driver.empty() ? "none"
                              : system.nvidia_open         ? "open"
                                                           : "proprietary",
                              "install the driver with its open kernel modules"));
    made.needs.push_back(need("static BAR1", system.nvidia_static_bar1, system.nvidia_static_bar1 ? "set" : "not set",
                              "load the nvidia module with NVreg_RegistryDwords=\"RMForceStaticBar1=1;"
                              "RmForceDisableIomapWC=1\""));
    made.needs.push_back(need("kernel 6.2 or later", system.kernel_version >= 602, system.kernel, "update the kernel"));
    requirement kernel = need("PCI P2PDMA in the kernel", system.p2pdma.value_or(false),
                              !system.p2pdma   ? "unknown"
                              : *system.p2pdma ? "p2pdma_pgmap_ops"
                                               : "none",
                              "boot a kernel with CONFIG_PCI_P2PDMA");
    if (!system.p2pdma) {
        kernel.is = state::unknown;
        kernel.remedy = "make /proc/kallsyms readable";
    }
    made.needs.push_back(kernel);
    made.needs.push_back(need("x86_64", system.machine == "x86_64", system.machine, "use another machine"));
    made.needs.push_back(needs_iommu_off(system));
    made.needs.push_back(
        of_mount(need("local NVMe drive", is_nvme(place) && is_local(place.mount.file_system),
                      place.drives.empty() ? place.mount.file_system : fmt::format("{}", fmt::join(place.drives, " ")),
                      "put the files on ext4 or xfs on an NVMe drive")));
    made.needs.push_back(of_mount(need("no RAID, no loop", place.raid.empty(), place.raid.empty() ? "none" : place.raid,
                                       "put the files on a plain drive")));
    made.needs.push_back(of_mount(need("no NVMe multipath", !place.multipath,
                                       place.multipath ? "multipath" : "one path", "load nvme_core with multipath=N")));
    made.needs.push_back(of_mount(needs_o_direct(place)));
    return made;
}

/// File systems of nvidia-fs, and what each needs of its mount.
requirement needs_known_file_system(const place_facts& place)
{
    const std::string& name = place.mount.file_system;
    const std::string& options = place.mount.super_options;
    const bool nfs = name == "nfs" || name == "nfs4";
    const bool over_rdma = options.find("proto=rdma") != std::string::npos;
    const bool ordered =
        options.find("data=journal") == std::string::npos && options.find("data=writeback") == std::string::npos;
    const bool known = name == "xfs" || name == "lustre" || name == "wekafs" || name == "beegfs" || name == "gpfs" ||
                       (name == "ext4" && ordered) || (nfs && over_rdma);
    return need("file system that nvidia-fs supports", known, name,
                nfs              ? "mount it with proto=rdma"
                : name == "ext4" ? "mount it with data=ordered"
                                 : "put the files on ext4, xfs, or NFS over RDMA");
}

direct_option by_nvidia_fs(const system_facts& system, const place_facts& place)
{
    direct_option made{.name = "nvidia-fs"};
    made.needs.push_back(needs_driver(system));
    made.needs.push_back(need("nvidia-fs.ko", !system.nvidia_fs.empty(),
                              system.nvidia_fs.empty() ? "not loaded" : system.nvidia_fs,
                              "install nvidia-fs-dkms on the host and load it: modprobe nvidia-fs"));
    made.needs.push_back(of_mount(needs_known_file_system(place)));
    if (is_local(place.mount.file_system))
        made.needs.push_back(
            of_mount(need("NVMe drive", is_nvme(place), fmt::format("{}", fmt::join(place.drives, " ")),
                          "put the files on an NVMe drive")));
    made.needs.push_back(need("/run/udev", system.udev, system.udev ? "there" : "absent",
                              "start the container with -v /run/udev:/run/udev:ro"));
    made.needs.push_back(needs_iommu_off(system));
    made.needs.push_back(of_mount(needs_o_direct(place)));
    return made;
}

direct_option by_dma_buf(const system_facts& system, const place_facts& place)
{
    direct_option made{.name = "dma-buf"};
    made.needs.push_back(needs_driver(system));
    made.needs.push_back(need("open kernel modules", system.nvidia_open,
                              system.nvidia_driver.empty() ? "none"
                              : system.nvidia_open         ? "open"
                                                           : "proprietary",
                              "install the driver with its open kernel modules"));
    made.needs.push_back(
        need("io_uring reads into dma-buf", false, "in no kernel release", "wait for a kernel that supports it"));
    made.needs.push_back(of_mount(needs_o_direct(place)));
    return made;
}

} // namespace

std::string_view to_string(requirement::state is) noexcept
{
    switch (is) {
        case state::present: return "present";
        case state::missing: return "missing";
        case state::unknown: return "unknown";
    }
    return "unknown";
}

const requirement* direct_option::missing() const noexcept
{
    const auto found =
        std::find_if(needs.begin(), needs.end(), [](const requirement& it) { return it.is != state::present; });
    return found == needs.end() ? nullptr : &*found;
}

std::vector<direct_option> direct_options(const system_facts& system, const place_facts& place)
{
    return {p2pdma(system, place), by_nvidia_fs(system, place), by_dma_buf(system, place)};
}

rules::rules(const system_facts& system, const place_facts& place, const configuration& by, const way_conditions& when)
{
    direct(system, place, by, when);
    const bool denied = by.denies(place.mount.file_system, place.mount.point);
    const bool vendor = when.device_memory && when.vendor_library && !by.force_compat_mode && !denied;
    rows_.push_back({file_way::cufile, vendor,
                     !when.device_memory       ? "the memory is not a GPU's"
                     : by.force_compat_mode    ? "properties.force_compat_mode is set"
                     : denied                  ? "the configuration's denylist lists this mount"
                     : vendor                  ? "NVIDIA's library is open"
                     : when.vendor_why.empty() ? "NVIDIA's library was not requested"
                                               : when.vendor_why});
    const bool uring = when.uring && system.uring_denied.value_or(0) != 2 && !by.force_compat_mode;
    compatible(file_way::uring, uring,
               by.force_compat_mode      ? "properties.force_compat_mode is set"
               : uring                   ? "io_uring is allowed"
               : !when.uring_why.empty() ? when.uring_why
                                         : "the sysctl kernel.io_uring_disabled denies io_uring",
               by, when);
    compatible(file_way::posix, true, "any file system, any memory", by, when);
}

void rules::compatible(file_way way, bool possible, const std::string& why, const configuration& by,
                       const way_conditions& when)
{
    if (when.device_memory && !by.allow_compat_mode)
        rows_.push_back({way, false, "the memory is a GPU's, but properties.allow_compat_mode is false"});
    else
        rows_.push_back({way, possible, why});
}

void rules::direct(const system_facts& system, const place_facts& place, const configuration& by,
                   const way_conditions& when)
{
    std::string why;
    if (!when.device_memory)
        why = "the memory is not a GPU's";
    else if (when.managed_memory)
        why = "managed memory migrates";
    else if (by.force_compat_mode)
        why = "properties.force_compat_mode is set";
    else if (by.denies(place.mount.file_system, place.mount.point))
        why = "the configuration's denylist lists this mount";
    else {
        for (const direct_option& option : direct_options(system, place)) {
            const requirement* missing = option.missing();
            why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", option.name,
                               !missing
                                   ? "all requirements are met, but this build does not support it"
                                   : fmt::format("{} {} ({})", missing->name, to_string(missing->is), missing->found));
        }
    }
    rows_.push_back({file_way::direct, false, why});
}

const rule* rules::chosen() const noexcept
{
    const auto found = std::find_if(rows_.begin(), rows_.end(), [](const rule& it) { return it.applies; });
    return found == rows_.end() ? nullptr : &*found;
}

std::string to_text(const rules& from)
{
    std::string text;
    for (const rule& it : from.all())
        text += fmt::format("{:8}{:7}{}\n", to_string(it.way),
                            &it == from.chosen() ? "taken"
                            : it.applies         ? "next"
                                                 : "no",
                            it.why);
    return text;
}

} // namespace weftio::storage
