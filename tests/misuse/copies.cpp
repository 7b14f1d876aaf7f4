// What stands for a queue, a kernel or memory can be handed on, not doubled: two objects would both give it back.
#include "weftio/weftio.hpp"

using namespace weftio;

void of_queues(eth_rxq& in, eth_txq& out, semaphore& items, progress_engine& events)
{
    eth_rxq same_in = in;             // refused: deleted
    eth_txq same_out = out;           // refused: deleted
    semaphore same_items = items;     // refused: deleted
    progress_engine same_ear(events); // refused: deleted
    eth_rxq in_now = std::move(in);
    eth_txq out_now = std::move(out);
    semaphore items_now = std::move(items);
    progress_engine ear_now(std::move(events));
}

void of_queue_pairs(rdma_queue& pair)
{
    rdma_queue same_pair = pair;          // refused: deleted
    rdma_receives same = pair.receives(); // refused: abstract
    rdma_queue pair_now = std::move(pair);
    const rdma_receives& receives = pair_now.receives();
}

void of_memory(memory& bytes, memory_region& region, buf_arr& frames)
{
    memory same_bytes = bytes;          // refused: deleted
    memory_region same_region = region; // refused: deleted
    buf_arr same_frames = frames;       // refused: deleted
    memory bytes_now = std::move(bytes);
    memory_region region_now = std::move(region);
    buf_arr frames_now = std::move(frames);
}

void of_what_runs(running_kernel& kernel, flow& rule, running_kernel& other_kernel, flow& other_rule)
{
    running_kernel same_kernel = kernel; // refused: deleted
    flow same_rule = rule;               // refused: deleted
    other_kernel = kernel;               // refused: deleted
    other_rule = rule;                   // refused: deleted
    other_kernel = std::move(kernel);
    other_rule = std::move(rule);
}

void handles_that_may(const port& port, const device& device)
{
    weftio::port same_port = port;
    weftio::device same_device = device;
}
