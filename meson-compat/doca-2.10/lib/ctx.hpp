// Contexts and progress engines.
#pragma once

#include <memory>
#include <vector>

#include "doca_pe.h"
#include "gpu.hpp"

/// What queues of every kind have in common. A queue derives from it.
struct doca_ctx {
    static constexpr const char* noun = "context";

    doca_ctx() = default;
    doca_ctx(const doca_ctx&) = delete;
    virtual ~doca_ctx() = default;

    doca_ctx_states state = DOCA_CTX_STATE_IDLE;
    std::shared_ptr<doca_gpu> gpu; ///< whose kernels use it; null: the CPU does
    doca_data user_data{};
    bool connected = false; ///< to a progress engine

    /// Makes the queue. @throws as weftio::doca::call knows
    virtual void start() = 0;
    virtual void stop() = 0;
    /// After stop(): whether work is in progress, which progress() sees end.
    virtual bool busy() const { return false; }
    /// Calls back for what has happened. Returns whether anything has.
    virtual bool progress() { return false; }

    void require_idle() const
    {
        weftio::doca::require(state == DOCA_CTX_STATE_IDLE, DOCA_ERROR_BAD_STATE,
                              "it is started; configure it before doca_ctx_start");
    }
    void require_running() const
    {
        weftio::doca::require(state == DOCA_CTX_STATE_RUNNING, DOCA_ERROR_BAD_STATE,
                              "it is not started; call doca_ctx_start first");
    }
    const weftio::device& device() const
    {
        weftio::doca::require(gpu != nullptr, DOCA_ERROR_BAD_STATE,
                              "it has no GPU; call doca_ctx_set_datapath_on_gpu first");
        return gpu->device;
    }
};

/// Work that the CPU gives to a context.
struct doca_task {
    static constexpr const char* noun = "task";

    virtual ~doca_task() = default;
    /// @throws as weftio::doca::call knows
    virtual void submit() = 0;
    doca_error_t status = DOCA_SUCCESS;
};

namespace weftio::doca {

/// Makes a context of type T, which programs know as a T and as a doca_ctx.
template <class T, class... Arguments>
void make_context(T** out, Arguments&&... arguments)
{
    make(out, std::forward<Arguments>(arguments)...);
    living<doca_ctx>::add(known(*out));
}
template <class T>
void destroy_context(T* context)
{
    auto object = living<T>::remove(context);
    living<doca_ctx>::remove(object.get());
}
/// As the functions doca_..._as_ctx: NULL for what is no context.
template <class T>
doca_ctx* as_context(const char* function, T* object)
{
    doca_ctx* context = nullptr;
    call(function, [&] { context = known(object).get(); });
    return context;
}

} // namespace weftio::doca
