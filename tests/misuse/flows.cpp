// A flow names queues that stay, and lasts as long as its object.
#include "weftio/weftio.hpp"

using namespace weftio;

void queues(const port& port, const device& device, eth_rxq& in, eth_rxq& other, eth_txq& out)
{
    auto a = flow_action::to(eth_rxq(port, device)); // refused: deleted
    auto b = flow_action::to(std::move(in));         // refused: deleted
    auto c = flow_action::to(&in);                   // refused: eth_rxq
    auto d = flow_action::to(in.handle());           // refused: eth_rxq
    auto e = flow_action::to(out);                   // refused: eth_rxq
    auto f = flow_action::rss({&in, &out});          // refused: eth_txq
    auto g = flow_action::rss({in, other});          // refused: rss
    auto h = flow_action::to(in);
    auto i = flow_action::rss({&in, &other});
}

void rules(const port& port, const device& device, eth_rxq& in, progress_engine& events, eth_txq& out)
{
    flow a(device, {}, flow_action::to(in)); // refused: flow
    flow b(port, {}, in);                    // refused: flow
    flow(port, {}, flow_action::to(in));     // refused: ignoring|nodiscard
    events.attach(in, {});                   // refused: attach
    flow::install(port, {});                 // refused: ignoring|nodiscard
    auto d = flow::install(port, {{in}});    // refused: install
    flow c(port, {}, flow_action::to(in));
    events.attach(out, {});
}
