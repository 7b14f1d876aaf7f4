#include "buf_array.hpp"

using namespace weftio::doca;

namespace {

struct first_byte {
    std::uint64_t address = 0, bytes = 0;
    std::uint32_t key = 0;
    bool is_remote = false;
};

first_byte first_byte_of(const doca_mmap& mmap, const doca_mmap::registered* range)
{
    if (mmap.remote)
        return {mmap.remote->address, mmap.remote->bytes, mmap.remote->rkey, true};
    return {reinterpret_cast<std::uint64_t>(range->device_address), range->bytes, range->region.lkey(), false};
}

} // namespace

void doca_buf_arr::require_stopped() const
{
    require(!handle_, DOCA_ERROR_BAD_STATE, "the buffer array is started, and cannot be changed");
}

void doca_buf_arr::start()
{
    require_stopped();
    require(gpu != nullptr, DOCA_ERROR_BAD_STATE,
            "the buffer array has no GPU; call doca_buf_arr_set_target_gpu first");
    require(mmap != nullptr, DOCA_ERROR_BAD_STATE, "the buffer array has no mmap; call doca_buf_arr_set_params first");
    auto range = mmap->remote ? nullptr : mmap->range();
    const auto from = first_byte_of(*mmap, range.get());
    require(start_offset <= from.bytes && elements <= (from.bytes - start_offset) / element_bytes,
            DOCA_ERROR_INVALID_VALUE, "{} elements of {} bytes from byte {} on do not fit in a range of {} bytes",
            elements, element_bytes, start_offset, from.bytes);
    std::vector<std::byte> content(sizeof(doca_gpu_buf_arr) + elements * sizeof(doca_gpu_buf));
    weftio::doca::kernel_table made(gpu->device, gpu->tables, content.size());
    auto* array = reinterpret_cast<doca_gpu_buf_arr*>(content.data());
    auto* buffers = reinterpret_cast<doca_gpu_buf*>(array + 1);
    array->elements = reinterpret_cast<doca_gpu_buf*>(static_cast<doca_gpu_buf_arr*>(made.device_address()) + 1);
    array->count = elements;
    for (std::size_t index = 0; index < elements; ++index)
        buffers[index] = {from.address + start_offset + index * element_bytes, element_bytes,
                          __builtin_bswap32(from.key), from.is_remote};
    made.write(content);
    handle_ = std::move(made);
    range_ = std::move(range);
}

void doca_buf_arr::stop()
{
    handle();
    handle_ = {};
    range_.reset();
}

doca_gpu_buf_arr* doca_buf_arr::handle() const
{
    require(bool(handle_), DOCA_ERROR_BAD_STATE, "the buffer array is not started");
    return static_cast<doca_gpu_buf_arr*>(handle_.device_address());
}

doca_error_t doca_buf_arr_create(std::size_t elements, doca_buf_arr** array)
{
    return call(__func__, [&] {
        require(elements && elements <= 1u << 31, DOCA_ERROR_INVALID_VALUE, "{} elements, not 1 to 2^31", elements);
        make(array, elements);
    });
}
doca_error_t doca_buf_arr_destroy(doca_buf_arr* array)
{
    return call(__func__, [&] { living<doca_buf_arr>::remove(array); });
}
doca_error_t doca_buf_arr_set_target_gpu(doca_buf_arr* array, doca_gpu* gpu)
{
    return call(__func__, [&] {
        auto one = known(array);
        auto target = known(gpu);
        one->require_stopped();
        one->gpu = std::move(target);
    });
}
doca_error_t doca_buf_arr_set_params(doca_buf_arr* array, doca_mmap* mmap, std::size_t element_bytes,
                                     std::uint64_t start_offset)
{
    return call(__func__, [&] {
        auto one = known(array);
        auto memory = known(mmap);
        require(element_bytes, DOCA_ERROR_INVALID_VALUE, "elements of 0 bytes");
        one->require_stopped();
        one->mmap = std::move(memory);
        one->element_bytes = element_bytes;
        one->start_offset = start_offset;
    });
}
doca_error_t doca_buf_arr_start(doca_buf_arr* array)
{
    return call(__func__, [&] { known(array)->start(); });
}
doca_error_t doca_buf_arr_stop(doca_buf_arr* array)
{
    return call(__func__, [&] { known(array)->stop(); });
}
doca_error_t doca_buf_arr_get_gpu_handle(const doca_buf_arr* array, doca_gpu_buf_arr** handle)
{
    return call(__func__, [&] {
        auto* kernels = known(array)->handle();
        result(handle, "handle") = kernels;
    });
}
