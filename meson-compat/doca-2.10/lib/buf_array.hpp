// Arrays of buffers for kernels.
#pragma once

#include "doca_buf_array.h"
#include "doca_gpunetio_dev_buf.cuh"
#include "mmap.hpp"

struct doca_buf_arr {
    static constexpr const char* noun = "buffer array";

    explicit doca_buf_arr(std::size_t count) : elements(count) {}

    std::size_t elements, element_bytes = 0, start_offset = 0;
    std::shared_ptr<doca_gpu> gpu;
    std::shared_ptr<doca_mmap> mmap;

    void start();
    void stop();
    void require_stopped() const;
    doca_gpu_buf_arr* handle() const;

 private:
    std::shared_ptr<doca_mmap::registered> range_;
    weftio::doca::kernel_table handle_;
};
