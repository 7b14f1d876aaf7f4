#include <algorithm>
#include <bit>
#include <optional>

#include "ctx.hpp"
#include "dev.hpp"
#include "doca_eth_txq_gpu_data_path.h"
#include "doca_gpunetio_dev_eth_txq.cuh"
#include "kernel_calls.hpp"
#include "log.hpp"
#include "weftio/eth_txq.hpp"

using namespace weftio::doca;

struct doca_eth_txq_gpu_event_error_send_packet {
    const weftio::send_failure& failure;
};
struct doca_eth_txq_gpu_event_notify_send_packet {
    const weftio::send_notification& notification;
};

struct doca_eth_txq : doca_ctx {
    static constexpr const char* noun = "send queue";

    doca_eth_txq(std::shared_ptr<doca_dev> on, std::uint32_t depth) : dev(std::move(on)), entries(depth) {}
    ~doca_eth_txq() override
    {
        call("doca_eth_txq_destroy", [this] { progress(); }); // failures reach the log
        end_queue();
    }

    void start() override;
    void stop() override { progress(); }
    bool progress() override { return events && events->progress(); }
    void set_checksum(std::uint32_t flag, bool on);
    doca_gpu_eth_txq* handle() const;

    const std::shared_ptr<doca_dev> dev;
    const std::uint32_t entries;
    std::uint32_t checksums = WEFTIO_DEV_SEND_NONE;
    doca_eth_txq_gpu_event_error_send_packet_cb_t on_error = nullptr;
    doca_eth_txq_gpu_event_notify_send_packet_cb_t on_sent = nullptr;
    doca_data error_data{}, sent_data{};

 private:
    void end_queue();
    void failed(const weftio::send_failure& failure) const;
    void sent(const weftio::send_notification& notification) const;

    std::optional<weftio::eth_txq> queue_;
    std::optional<weftio::progress_engine> events;
    weftio::doca::kernel_table handle_;
};

void doca_eth_txq::start()
{
    end_queue();
    queue_.emplace(dev->port(), device(),
                   weftio::eth_txq_options{.entries = std::max(64u, std::bit_ceil(entries)), .checksums = checksums});
    events.emplace();
    events->attach(*queue_, {.on_sent = [this](const weftio::send_notification& event) { sent(event); },
                             .on_error = [this](const weftio::send_failure& event) { failed(event); }});
    handle_ = weftio::doca::kernel_table::of(gpu->device, gpu->tables, doca_gpu_eth_txq{queue_->handle()});
}

void doca_eth_txq::end_queue()
{
    events.reset();
    if (queue_)
        end_waits(*queue_->control());
    queue_.reset();
}

void doca_eth_txq::failed(const weftio::send_failure& failure) const
{
    log_failure("send queue", DOCA_ERROR_IO_FAILED, failure.text);
    if (doca_eth_txq_gpu_event_error_send_packet event{failure}; on_error)
        on_error(&event, error_data);
}

void doca_eth_txq::sent(const weftio::send_notification& notification) const
{
    if (doca_eth_txq_gpu_event_notify_send_packet event{notification}; on_sent)
        on_sent(&event, sent_data);
}

void doca_eth_txq::set_checksum(std::uint32_t flag, bool on)
{
    require_idle();
    checksums = on ? checksums | flag : checksums & ~flag;
}

doca_gpu_eth_txq* doca_eth_txq::handle() const
{
    require_running();
    return static_cast<doca_gpu_eth_txq*>(handle_.device_address());
}

doca_error_t doca_eth_txq_create(doca_dev* dev, std::uint32_t entries, doca_eth_txq** txq)
{
    return call(__func__, [&] {
        auto device = known(dev);
        require(entries && entries <= 32768, DOCA_ERROR_INVALID_VALUE, "{} entries, not 1 to 32768", entries);
        make_context(txq, device, entries);
    });
}
doca_error_t doca_eth_txq_destroy(doca_eth_txq* txq)
{
    return call(__func__, [&] { destroy_context(txq); });
}
doca_error_t doca_eth_txq_set_l3_chksum_offload(doca_eth_txq* txq, std::uint8_t enable)
{
    return call(__func__, [&] { known(txq)->set_checksum(WEFTIO_DEV_SEND_L3_CHECKSUM, enable); });
}
doca_error_t doca_eth_txq_set_l4_chksum_offload(doca_eth_txq* txq, std::uint8_t enable)
{
    return call(__func__, [&] { known(txq)->set_checksum(WEFTIO_DEV_SEND_L4_CHECKSUM, enable); });
}
doca_error_t doca_eth_txq_set_wait_on_time_offload(doca_eth_txq* txq)
{
    return call(__func__, [&] { known(txq)->require_idle(); });
}
doca_error_t doca_eth_txq_cap_get_wait_on_time_offload_supported(const doca_devinfo* devinfo,
                                                                 doca_eth_wait_on_time_type* type)
{
    return call(__func__, [&] {
        known(devinfo);
        result(type, "type") = DOCA_ETH_WAIT_ON_TIME_TYPE_NATIVE;
    });
}
doca_error_t doca_eth_txq_calculate_timestamp(doca_eth_txq* txq, std::uint64_t realtime_ns, std::uint64_t* value)
{
    return call(__func__, [&] {
        known(txq);
        result(value, "value") = weftio::eth_txq::timestamp(realtime_ns);
    });
}
doca_ctx* doca_eth_txq_as_doca_ctx(doca_eth_txq* txq)
{
    return as_context(__func__, txq);
}
doca_error_t doca_eth_txq_get_gpu_handle(const doca_eth_txq* txq, doca_gpu_eth_txq** handle)
{
    return call(__func__, [&] {
        auto* kernels = known(txq)->handle();
        result(handle, "handle") = kernels;
    });
}

doca_error_t doca_eth_txq_gpu_event_error_send_packet_register(doca_eth_txq* txq,
                                                               doca_eth_txq_gpu_event_error_send_packet_cb_t callback,
                                                               doca_data user_data)
{
    return call(__func__, [&] {
        auto queue = known(txq);
        require(callback, DOCA_ERROR_INVALID_VALUE, "the callback is a null pointer");
        queue->require_idle();
        queue->on_error = callback;
        queue->error_data = user_data;
    });
}
doca_error_t doca_eth_txq_gpu_event_notify_send_packet_register(doca_eth_txq* txq,
                                                                doca_eth_txq_gpu_event_notify_send_packet_cb_t callback,
                                                                doca_data user_data)
{
    return call(__func__, [&] {
        auto queue = known(txq);
        require(callback, DOCA_ERROR_INVALID_VALUE, "the callback is a null pointer");
        queue->require_idle();
        queue->on_sent = callback;
        queue->sent_data = user_data;
    });
}

doca_error_t
doca_eth_txq_gpu_event_error_send_packet_get_position(const doca_eth_txq_gpu_event_error_send_packet* event,
                                                      std::uint16_t* position)
{
    return call(__func__, [&] {
        require(event, DOCA_ERROR_INVALID_VALUE, "the event is a null pointer");
        result(position, "position") = static_cast<std::uint16_t>(event->failure.position);
    });
}
doca_error_t
doca_eth_txq_gpu_event_notify_send_packet_get_position(const doca_eth_txq_gpu_event_notify_send_packet* event,
                                                       std::uint16_t* position)
{
    return call(__func__, [&] {
        require(event, DOCA_ERROR_INVALID_VALUE, "the event is a null pointer");
        result(position, "position") = static_cast<std::uint16_t>(event->notification.position);
    });
}
doca_error_t
doca_eth_txq_gpu_event_notify_send_packet_get_timestamp(const doca_eth_txq_gpu_event_notify_send_packet* event,
                                                        std::uint64_t* timestamp_ns)
{
    return call(__func__, [&] {
        require(event, DOCA_ERROR_INVALID_VALUE, "the event is a null pointer");
        result(timestamp_ns, "timestamp_ns") = event->notification.time_ns;
    });
}
