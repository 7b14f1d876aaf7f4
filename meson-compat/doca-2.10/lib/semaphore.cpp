#include "weftio/semaphore.hpp"

#include "gpu.hpp"

using namespace weftio::doca;

struct doca_gpu_semaphore {
    static constexpr const char* noun = "semaphore";

    explicit doca_gpu_semaphore(std::shared_ptr<doca_gpu> owner) : gpu(std::move(owner)) {}

    std::shared_ptr<doca_gpu> gpu;
    weftio::semaphore_options options{.items = 0, .check_transitions = false};
    doca_gpu_mem_type type = DOCA_GPU_MEM_TYPE_GPU, custom_info_type = DOCA_GPU_MEM_TYPE_GPU;
    std::optional<weftio::semaphore> started{};

    weftio::semaphore& items()
    {
        require(started.has_value(), DOCA_ERROR_BAD_STATE, "the semaphore is not started");
        return *started;
    }
    void require_stopped() const
    {
        require(!started, DOCA_ERROR_BAD_STATE, "the semaphore is started, and cannot be changed");
    }
    void require_cpu_access(doca_gpu_mem_type of, const char* what) const
    {
        require(of != DOCA_GPU_MEM_TYPE_GPU, DOCA_ERROR_NOT_PERMITTED,
                "{} in memory of type DOCA_GPU_MEM_TYPE_GPU, which the CPU does not access", what);
    }
};

doca_error_t doca_gpu_semaphore_create(doca_gpu* gpu, doca_gpu_semaphore** semaphore)
{
    return call(__func__, [&] { make(semaphore, known(gpu)); });
}

doca_error_t doca_gpu_semaphore_destroy(doca_gpu_semaphore* semaphore)
{
    return call(__func__, [&] { living<doca_gpu_semaphore>::remove(semaphore); });
}

doca_error_t doca_gpu_semaphore_start(doca_gpu_semaphore* semaphore)
{
    return call(__func__, [&] {
        auto one = known(semaphore);
        one->require_stopped();
        require(one->options.items, DOCA_ERROR_BAD_STATE,
                "the semaphore has no items; call doca_gpu_semaphore_set_items_num first");
        one->started.emplace(one->gpu->device, one->options);
    });
}

doca_error_t doca_gpu_semaphore_stop(doca_gpu_semaphore* semaphore)
{
    return call(__func__, [&] {
        auto one = known(semaphore);
        one->items();
        one->started.reset();
    });
}

doca_error_t doca_gpu_semaphore_set_memory_type(doca_gpu_semaphore* semaphore, doca_gpu_mem_type type)
{
    return call(__func__, [&] {
        auto one = known(semaphore);
        require_memory_type(type);
        one->require_stopped();
        one->type = type;
    });
}

doca_error_t doca_gpu_semaphore_set_items_num(doca_gpu_semaphore* semaphore, std::uint32_t items)
{
    return call(__func__, [&] {
        auto one = known(semaphore);
        require(items >= 1 && items <= 1u << 20, DOCA_ERROR_INVALID_VALUE, "{} items, not 1 to 2^20", items);
        one->require_stopped();
        one->options.items = items;
    });
}

doca_error_t doca_gpu_semaphore_set_custom_info(doca_gpu_semaphore* semaphore, std::uint32_t bytes,
                                                doca_gpu_mem_type type)
{
    return call(__func__, [&] {
        auto one = known(semaphore);
        require_memory_type(type);
        require(bytes >= 1 && bytes <= 1u << 20, DOCA_ERROR_INVALID_VALUE, "custom info of {} bytes, not 1 to 2^20",
                bytes);
        one->require_stopped();
        one->options.custom_info_bytes = bytes;
        one->custom_info_type = type;
    });
}

doca_error_t doca_gpu_semaphore_get_gpu_handle(doca_gpu_semaphore* semaphore, doca_gpu_semaphore_gpu** handle)
{
    return call(__func__, [&] {
        auto& items = known(semaphore)->items();
        result(handle, "handle") = reinterpret_cast<doca_gpu_semaphore_gpu*>(items.handle());
    });
}

doca_error_t doca_gpu_semaphore_get_status(doca_gpu_semaphore* semaphore, std::uint32_t index,
                                           doca_gpu_semaphore_status* status)
{
    return call(__func__, [&] {
        auto one = known(semaphore);
        auto& items = one->items();
        one->require_cpu_access(one->type, "the statuses lie");
        result(status, "status") = static_cast<doca_gpu_semaphore_status>(items.get_status(index));
    });
}

doca_error_t doca_gpu_semaphore_set_status(doca_gpu_semaphore* semaphore, std::uint32_t index,
                                           doca_gpu_semaphore_status status)
{
    return call(__func__, [&] {
        auto one = known(semaphore);
        auto& items = one->items();
        one->require_cpu_access(one->type, "the statuses lie");
        require(status >= DOCA_GPU_SEMAPHORE_STATUS_FREE && status <= DOCA_GPU_SEMAPHORE_STATUS_ERROR,
                DOCA_ERROR_INVALID_VALUE, "{} is no status of a semaphore", static_cast<int>(status));
        items.set_status(index, static_cast<weftio::semaphore_status>(status));
    });
}

doca_error_t doca_gpu_semaphore_get_custom_info_addr(doca_gpu_semaphore* semaphore, std::uint32_t index,
                                                     void** custom_info)
{
    return call(__func__, [&] {
        auto one = known(semaphore);
        auto& items = one->items();
        require(one->options.custom_info_bytes, DOCA_ERROR_NOT_FOUND,
                "items have no custom info; call doca_gpu_semaphore_set_custom_info before the start");
        one->require_cpu_access(one->custom_info_type, "custom info lies");
        result(custom_info, "custom_info") = items.get_custom_info(index);
    });
}
