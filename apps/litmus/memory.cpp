#include "memory.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "verbs.hpp"

namespace weftio::litmus {

namespace {

std::size_t rounded(std::size_t bytes, std::size_t to)
{
    return (bytes + to - 1) / to * to;
}

} // namespace

// A GPU's memory is exported by whole pages of its own; allocations of 2 MiB begin at one.
words::words(std::size_t count, kind of, const std::vector<int>& gpus)
    : kind_(of), bytes_(rounded(count * 8, of == of_gpu ? std::size_t{2} << 20 : 4096))
{
    if (kind_ == mapped) {
        mapped_.emplace(bytes_, gpus);
        bytes_ = mapped_->bytes();
        at_ = reinterpret_cast<std::uint64_t*>(mapped_->at());
    } else {
        take();
    }
    if (!in_gpu()) {
        std::memset(at_, 0, bytes_);
        return;
    }
    stream zeroes;
    zeroes.zero(at_, bytes_);
    zeroes.wait();
}

void words::take()
{
    constexpr unsigned portable = 1, device_map = 2;
    device_pointer on_gpu = 0;
    void* of_driver = nullptr;
    if (kind_ == of_gpu) {
        need(driver::library().cuMemAlloc_v2(&on_gpu, bytes_), "the GPU gives no memory");
        at_ = reinterpret_cast<std::uint64_t*>(on_gpu);
    } else if (kind_ == pinned) {
        need(driver::library().cuMemHostAlloc(&of_driver, bytes_, portable | device_map), "no pinned memory");
        at_ = static_cast<std::uint64_t*>(of_driver);
    } else {
        at_ = static_cast<std::uint64_t*>(std::aligned_alloc(4096, bytes_));
    }
    if (!at_)
        throw std::bad_alloc();
}

words::~words()
{
    if (kind_ == of_gpu)
        driver::library().cuMemFree_v2(reinterpret_cast<device_pointer>(at_));
    else if (kind_ == pinned)
        driver::library().cuMemFreeHost(at_);
    else if (kind_ == of_host)
        std::free(at_);
}

int words::export_dma_buf() const
{
    constexpr int dma_buf = 1;
    int made = -1;
    if (!driver::library().cuMemGetHandleForAddressRange)
        throw failure("this driver exports no dma-buf; install one for CUDA 12 or newer");
    need(driver::library().cuMemGetHandleForAddressRange(&made, reinterpret_cast<device_pointer>(at_), bytes_, dma_buf,
                                                         0),
         "the driver exports no dma-buf of the GPU's memory");
    return made;
}

} // namespace weftio::litmus
