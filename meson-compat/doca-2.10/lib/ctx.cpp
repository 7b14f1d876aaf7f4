#include "ctx.hpp"

#include <algorithm>

using namespace weftio::doca;

struct doca_pe {
    static constexpr const char* noun = "progress engine";
    std::vector<std::weak_ptr<doca_ctx>> contexts;
};

doca_error_t doca_ctx_start(doca_ctx* ctx)
{
    return call(__func__, [&] {
        auto context = known(ctx);
        context->require_idle();
        context->start();
        context->state = DOCA_CTX_STATE_RUNNING;
    });
}
doca_error_t doca_ctx_stop(doca_ctx* ctx)
{
    bool busy = false;
    const doca_error_t stopped = call(__func__, [&] {
        auto context = known(ctx);
        if (context->state != DOCA_CTX_STATE_STOPPING)
            context->require_running();
        context->stop();
        busy = context->busy();
        context->state = busy ? DOCA_CTX_STATE_STOPPING : DOCA_CTX_STATE_IDLE;
    });
    return busy ? DOCA_ERROR_IN_PROGRESS : stopped;
}
doca_error_t doca_ctx_get_state(const doca_ctx* ctx, doca_ctx_states* state)
{
    return call(__func__, [&] {
        auto context = known(ctx);
        result(state, "state") = context->state;
    });
}
doca_error_t doca_ctx_set_user_data(doca_ctx* ctx, doca_data user_data)
{
    return call(__func__, [&] { known(ctx)->user_data = user_data; });
}
doca_error_t doca_ctx_set_datapath_on_gpu(doca_ctx* ctx, doca_gpu* gpu)
{
    return call(__func__, [&] {
        auto context = known(ctx);
        auto target = known(gpu);
        context->require_idle();
        context->gpu = std::move(target);
    });
}

doca_error_t doca_pe_create(doca_pe** pe)
{
    return call(__func__, [&] { make(pe); });
}
doca_error_t doca_pe_destroy(doca_pe* pe)
{
    return call(__func__, [&] {
        const auto engine = living<doca_pe>::remove(pe);
        for (auto& weak : engine->contexts)
            if (auto context = weak.lock())
                context->connected = false;
    });
}
doca_error_t doca_pe_connect_ctx(doca_pe* pe, doca_ctx* ctx)
{
    return call(__func__, [&] {
        auto engine = known(pe);
        auto context = known(ctx);
        require(!context->connected, DOCA_ERROR_BAD_STATE, "the context is connected to a progress engine already");
        engine->contexts.push_back(context);
        context->connected = true;
    });
}
std::uint8_t doca_pe_progress(doca_pe* pe)
{
    bool has_worked = false;
    call(__func__, [&] {
        auto engine = known(pe);
        std::erase_if(engine->contexts, [](const auto& weak) { return weak.expired(); });
        const auto contexts = engine->contexts; // callbacks may connect others
        for (const auto& weak : contexts)
            if (auto context = weak.lock()) {
                has_worked |= context->progress();
                if (context->state == DOCA_CTX_STATE_STOPPING && !context->busy())
                    context->state = DOCA_CTX_STATE_IDLE;
            }
    });
    return has_worked;
}

doca_error_t doca_task_submit(doca_task* task)
{
    return call(__func__, [&] { known(task)->submit(); });
}
doca_error_t doca_task_get_status(const doca_task* task)
{
    doca_error_t status = DOCA_SUCCESS;
    const doca_error_t found = call(__func__, [&] { status = known(task)->status; });
    return found == DOCA_SUCCESS ? status : found;
}
void doca_task_free(doca_task* task)
{
    call(__func__, [&] {
        require(known(task)->status != DOCA_ERROR_IN_PROGRESS, DOCA_ERROR_IN_USE, "the task is in progress");
        living<doca_task>::remove(task);
    });
}
