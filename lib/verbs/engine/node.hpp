// One device of the process: a port, its addresses, and how programs see it as a device.
#pragma once

#include <cstdint>
#include <string>

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <unistd.h>

#include "tree.hpp"
#include "watcher.hpp"
#include "weftio/device.hpp"
#include "weftio/port.hpp"
#include "weftio/rdma.hpp"

namespace weftio::verbs {

/// Firmware version that the device reports: major, minor, sub-minor.
inline constexpr std::uint32_t firmware[] = {28, 39, 1002};

/// Lives as long as the process.
struct node {
    weftio::port port;
    rdma_device rdma;
    device memory; ///< adopts memory of the program
    watcher& events;
    unsigned doorbell_bytes;  ///< see settings
    std::string wire;         ///< name of its wire in memory; empty: it is on another link
    uid_t user = ::geteuid(); ///< whose wire it is
};

/// The GUID, made from the MAC of the port, in network byte order (EUI-64).
std::uint64_t guid_of(const node& of) noexcept;
ib_uverbs_query_device_resp describe_device(const node& of) noexcept;
ib_uverbs_query_port_resp describe_port(const node& of);
/// For the files by which programs find the device. @param number  N of mlx5_N
device_description describe_files(const node& of, unsigned number);
/// @param asked  request for doorbells
mlx5_ib_alloc_ucontext_resp describe_context(const node& of, const mlx5_ib_alloc_ucontext_req_v2& asked) noexcept;

} // namespace weftio::verbs
