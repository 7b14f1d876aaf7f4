// What a kernel is given is copied byte by byte, is of its parameter's kind, and outlives it.
#include <string>

#include "weftio/weftio.hpp"

using namespace weftio;

using list = std::vector<int>;

void parameters(const device& device, const kernel<int, const char*>& plain, const kernel<grid>& whole,
                const kernel<std::string>& text, const kernel<list>& numbers, const kernel<int&>& outside)
{
    int number = 1;
    auto a = device.launch(text, {}, "text");    // refused: trivially copyable
    auto b = device.launch(numbers, {}, list{}); // refused: trivially copyable
    auto c = device.launch(outside, {}, number); // refused: no references
    auto d = device.launch(plain, {}, number, "text");
    auto e = device.launch(whole, {}, grid{});
}

using receives = kernel<weftio_dev_eth_rxq*>;
using counts = kernel<weftio_u32*, weftio_u32>;

void kinds(const device& device, const receives& receives, const counts& counts, eth_rxq& in, eth_txq& out,
           memory& sums)
{
    auto* sum = static_cast<weftio_u32*>(sums.device_address());
    const weftio_u32* fixed = sum;
    auto a = device.launch(receives, {}, out);          // refused: of its parameter's kind
    auto b = device.launch(receives, {}, out.handle()); // refused: of its parameter's kind
    auto c = device.launch(receives, {}, 1);            // refused: of its parameter's kind
    auto d = device.launch(counts, {}, sums, 1);        // refused: of its parameter's kind
    auto e = device.launch(counts, {}, fixed, 1);       // refused: of its parameter's kind
    auto f = device.launch(counts, {}, in, 1);          // refused: of its parameter's kind
    auto g = device.launch(counts, {}, sum);            // refused: as many arguments
    auto h = device.launch(counts, {}, sum, 1, 2);      // refused: as many arguments
    auto i = device.launch(receives, {}, in);
    auto j = device.launch(receives, {}, in.handle());
    auto k = device.launch(counts, {}, sum, 1);
    auto l = device.launch(counts, {}, sums.device_address(), 1);
}

void sides(const device& device, const kernel<weftio_dev_rdma*, weftio_dev_rdma_recv*>& both, rdma_queue& queue)
{
    auto a = device.launch(both, {}, queue, queue);            // refused: of its parameter's kind
    auto b = device.launch(both, {}, queue.receives(), queue); // refused: of its parameter's kind
    auto c = device.launch(both, {}, queue, queue.receives());
}

void no_kernel(const device& device, void (*function)(weftio_dev_eth_rxq*), eth_rxq& in, grid shape,
               const receives& receives)
{
    auto a = device.launch(function, shape, in); // refused: no match
    auto b = device.launch(receives, in);        // refused: grid
    auto c = device.launch(receives, shape, in);
}

void temporaries(const device& device, const port& port, const receives& receives, eth_rxq& in)
{
    auto a = device.launch(receives, {}, eth_rxq(port, device)); // refused: outlives it
    auto b = device.launch(receives, {}, std::move(in));         // refused: outlives it
}
