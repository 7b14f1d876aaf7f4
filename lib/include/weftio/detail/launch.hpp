// Builds the launch request of device::launch() from a kernel and its arguments. For device.hpp, not for applications.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "weftio/detail/internals.hpp"
#include "weftio/device.hpp"
#include "weftio/device/handle.h"
#include "weftio/device/queue/control.h"

struct weftio_dev_buf_arr;
struct weftio_dev_completion_queue;
struct weftio_dev_eth_rxq;
struct weftio_dev_eth_txq;
struct weftio_dev_dma;
struct weftio_dev_file_queue;
struct weftio_dev_rdma;
struct weftio_dev_rdma_connections;
struct weftio_dev_rdma_recv;
struct weftio_dev_semaphore;

namespace weftio {

namespace devices {

/// The reference by which a running kernel keeps a queue's memory alive, also if the queue is reset or destroyed
/// meanwhile.
class lifeline {
 public:
    virtual ~lifeline() = default;
    virtual weftio_dev_control* control() const noexcept = 0;
    /// The device whose kernels may use the memory.
    virtual const device_backend& backend() const noexcept = 0;
    /// A line such as "eth_rxq 0 on pcap:builtin: 1024 posted, 36 delivered, 0 out_of_buffer".
    virtual std::string describe() const = 0;
    /// Makes the NIC stop using the ring: entries that it has not completed are flushed. Blocks for up to one engine
    /// iteration.
    virtual void quiesce() = 0;
};

/// A launch with the types of its arguments erased, for the OpenCL and CUDA back ends, and a callable for the CPU.
struct launch_request {
    struct argument {
        const void* value;
        std::size_t bytes;
        bool pointer;
        std::uint32_t abi; ///< for a pointer to a handle: the first word that the handle must have; else 0
    };
    const char* name;
    std::string_view source;
    std::string_view cuda_image;
    grid shape;
    std::vector<argument> arguments; ///< valid only during device_backend::launch()
    std::function<void()> call;      ///< runs one lane on the CPU; owns copies of the arguments
    /// Control blocks of the arguments; a back end raises their abort flags when a block faults.
    std::vector<weftio_dev_control*> controls;
    /// Lifelines of the arguments; a back end holds them until the kernel has ended.
    std::vector<std::shared_ptr<lifeline>> lines;
    const char* file = ""; ///< name of the header whose text is `source`
};

} // namespace devices

namespace detail {

/// The first word of handles of type T, in the version of the headers that this is compiled with; 0: T is no handle.
template <class T>
inline constexpr std::uint32_t abi_of = 0;
template <>
inline constexpr std::uint32_t abi_of<weftio_dev_buf_arr> = WEFTIO_DEV_ABI_BUF_ARR;
template <>
inline constexpr std::uint32_t abi_of<weftio_dev_eth_rxq> = WEFTIO_DEV_ABI_ETH_RXQ;
template <>
inline constexpr std::uint32_t abi_of<weftio_dev_eth_txq> = WEFTIO_DEV_ABI_ETH_TXQ;
template <>
inline constexpr std::uint32_t abi_of<weftio_dev_dma> = WEFTIO_DEV_ABI_DMA;
template <>
inline constexpr std::uint32_t abi_of<weftio_dev_file_queue> = WEFTIO_DEV_ABI_FILE_QUEUE;
template <>
inline constexpr std::uint32_t abi_of<weftio_dev_semaphore> = WEFTIO_DEV_ABI_SEMAPHORE;
template <>
inline constexpr std::uint32_t abi_of<weftio_dev_completion_queue> = WEFTIO_DEV_ABI_COMPLETION_QUEUE;
template <>
inline constexpr std::uint32_t abi_of<weftio_dev_rdma> = WEFTIO_DEV_ABI_RDMA;
template <>
inline constexpr std::uint32_t abi_of<weftio_dev_rdma_connections> = WEFTIO_DEV_ABI_RDMA_CONNECTIONS;
template <>
inline constexpr std::uint32_t abi_of<weftio_dev_rdma_recv> = WEFTIO_DEV_ABI_RDMA_RECV;

template <class T>
decltype(auto) kernel_argument(T& object)
{
    if constexpr (exported<T>)
        return object.handle();
    else
        return object;
}

/// Whether an argument of launch() can be converted to a parameter of the kernel.
template <class Parameter, class Argument>
concept fits = requires(Argument& argument)
{
    static_cast<Parameter>(kernel_argument(argument));
};

/// Whether an argument outlives the launch statement, if it must: a host object must not be a temporary.
template <class Argument>
constexpr bool stays = std::is_lvalue_reference_v<Argument> || !exported<std::remove_reference_t<Argument>>;

/// Compile-time checks of a launch, each with its error message.
template <class... Parameters>
struct parameters_of {
    static_assert((std::is_trivially_copyable_v<Parameters> && ...),
                  "a kernel gets the bytes of its arguments: its parameters are trivially copyable, and no references");

    template <class... Arguments>
    static constexpr bool take()
    {
        static_assert(sizeof...(Parameters) == sizeof...(Arguments), "as many arguments as the kernel has parameters");
        static_assert((stays<Arguments> && ...),
                      "what a kernel uses outlives it: give the queue, semaphore or buf_arr a name, not a temporary");
        if constexpr (sizeof...(Parameters) == sizeof...(Arguments))
            static_assert((fits<Parameters, Arguments> && ...),
                          "each argument is of its parameter's kind: a queue of that kind, a scalar, or the address of "
                          "memory (device_address()), not the memory itself");
        return true;
    }
};

/// A host object with a lifeline: a watchdog observes and describes it, and stops the NIC's use of it.
template <class T>
concept watchable = stoppable<T> && requires(const T& object)
{
    internals::line(object);
};

template <class T>
void collect_control(T& object, std::vector<weftio_dev_control*>& controls)
{
    if constexpr (stoppable<T>)
        controls.push_back(object.control());
}

template <class T>
void collect_line(T& object, std::vector<std::shared_ptr<devices::lifeline>>& lines)
{
    if constexpr (watchable<T>)
        lines.push_back(internals::line(object));
}

} // namespace detail

template <class... Parameters, class... Arguments>
running_kernel device::launch(const kernel<Parameters...>& kernel, grid shape, Arguments&&... arguments) const
{
    static_assert(detail::parameters_of<Parameters...>::template take<Arguments...>());
    std::tuple<Parameters...> values{static_cast<Parameters>(detail::kernel_argument(arguments))...};
    devices::launch_request request{.name = kernel.name,
                                    .source = kernel.source,
                                    .cuda_image = kernel.cuda_image,
                                    .shape = shape,
                                    .arguments = {},
                                    .call = {},
                                    .controls = {},
                                    .lines = {},
                                    .file = kernel.file};
    (detail::collect_control(arguments, request.controls), ...);
    (detail::collect_line(arguments, request.lines), ...);
    std::apply(
        [&](auto&... value) {
            (request.arguments.push_back(
                 {&value, sizeof(decltype(value)), std::is_pointer_v<std::remove_reference_t<decltype(value)>>,
                  detail::abi_of<std::remove_cv_t<std::remove_pointer_t<std::decay_t<decltype(value)>>>>}),
             ...);
        },
        values);
    request.call = [function = kernel.function, values] { std::apply(function, values); };
    return launch_erased(request);
}

} // namespace weftio
