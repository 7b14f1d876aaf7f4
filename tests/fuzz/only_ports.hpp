// What the library refers to, and a fuzzer of weftio-run's engine never calls: it has ports and CPU memory only.
#pragma once

#include <cstdlib>
#include <memory>
#include <string_view>

#include "devices/backend.hpp"
#include "weftio/weftio.hpp"

/// The program's memory is the CPU's: no other device opens.
std::shared_ptr<weftio::devices::device_backend> weftio::devices::open_opencl(int)
{
    std::abort();
}
std::shared_ptr<weftio::devices::device_backend> weftio::devices::open_cuda(std::string_view, int)
{
    std::abort();
}

/// Regions and queues are a port's here.
weftio::nic::dma_backend& weftio::detail::internals::backend(const dma_engine&) noexcept
{
    std::abort();
}
std::shared_ptr<weftio::nic::file_backend> weftio::detail::internals::backend(const file_engine&)
{
    std::abort();
}

std::shared_ptr<weftio::queues::reported_queue> weftio::detail::internals::reports(const dma_queue&) noexcept
{
    std::abort();
}
std::shared_ptr<weftio::queues::reported_queue> weftio::detail::internals::reports(const eth_txq&) noexcept
{
    std::abort();
}
std::shared_ptr<weftio::queues::reported_queue> weftio::detail::internals::reports(const file_queue&) noexcept
{
    std::abort();
}
