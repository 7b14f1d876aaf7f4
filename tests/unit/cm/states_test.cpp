// Every message in every state, against a table of what IBTA 12.9 says: what is answered, which state follows, what the
// user is told.
//
// Where the specification leaves a choice, the table has what the manager does: it answers DREQ by itself, it answers a
// repeated REQ or REP by MRA while its user thinks, and it ignores what comes too late.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace cm_ends;

constexpr std::uint32_t own_queue = 0x21, peer_queue = 0x11, peer_id = 0x1234;

/// A manager with one connection to a peer that the test plays.
struct one_side {
    one_side() { under_test.under_test.listen(service, {}, 4, listener); }

    void receive(const message& body, std::uint64_t transaction_of_it)
    {
        under_test.receive(peer, {transaction_of_it, body}, now);
    }
    void receive(const message& body) { receive(body, transaction); }
    void forget()
    {
        under_test.out.sent.clear();
        while (under_test.under_test.next_event()) {
        }
    }
    std::optional<state> current() { return under_test.under_test.state_of(id); }

    req peers_req() const
    {
        req request = usual_req(peer_queue);
        request.local_id = peer_id;
        return request;
    }
    rep peers_rep() const { return {.local_id = peer_id, .remote_id = id, .queue = peer_queue}; }

    // Each brings the connection into a state.
    void request_sent()
    {
        under_test.under_test.connect(under_test.to(peer), usual_req(own_queue), now, id);
        transaction = under_test.take_sent().transaction;
    }
    void request_delayed()
    {
        request_sent();
        receive(mra{.local_id = peer_id, .remote_id = id, .what = about::req, .service_timeout = 18});
    }
    void reply_received()
    {
        request_sent();
        receive(peers_rep());
    }
    void established_active()
    {
        reply_received();
        under_test.under_test.ready(id);
    }
    void request_received()
    {
        transaction = 0x77;
        receive(peers_req());
        id = under_test.told().id;
    }
    void reply_sent()
    {
        request_received();
        under_test.under_test.accept(id, {.queue = own_queue}, now);
    }
    void reply_delayed()
    {
        reply_sent();
        receive(mra{.local_id = peer_id, .remote_id = id, .what = about::rep, .service_timeout = 18});
    }
    void established_passive()
    {
        reply_sent();
        receive(rtu{.local_id = peer_id, .remote_id = id});
    }
    void disconnect_sent()
    {
        established_active();
        under_test.under_test.disconnect(id, {}, now);
    }
    void time_wait()
    {
        established_active();
        receive(dreq{.local_id = peer_id, .remote_id = id, .remote_queue = own_queue});
    }
    void rejected()
    {
        request_received();
        under_test.under_test.reject(id, {}, now);
    }
    void gone() { id = 0x4321; }

    end under_test{1}, peer{2};
    std::uint64_t now = 1000 * ms, transaction = 0;
    std::uint32_t listener = 0, id = 0;
};

/// The messages of the peer, each right for the connection.
const std::map<std::string, message (*)(const one_side&)> messages{
    {"REQ", [](const one_side& side) -> message { return side.peers_req(); }},
    {"MRA of REQ",
     [](const one_side& side) -> message {
         return mra{.local_id = peer_id, .remote_id = side.id, .what = about::req, .service_timeout = 18};
     }},
    {"MRA of REP",
     [](const one_side& side) -> message {
         return mra{.local_id = peer_id, .remote_id = side.id, .what = about::rep, .service_timeout = 18};
     }},
    {"REJ", [](const one_side& side) -> message { return rej{.local_id = peer_id, .remote_id = side.id}; }},
    {"REJ stale",
     [](const one_side& side) -> message {
         return rej{.local_id = peer_id, .remote_id = side.id, .reason = reject_reason::stale_connection};
     }},
    {"REP", [](const one_side& side) -> message { return side.peers_rep(); }},
    {"RTU", [](const one_side& side) -> message { return rtu{.local_id = peer_id, .remote_id = side.id}; }},
    {"DREQ",
     [](const one_side& side) -> message {
         return dreq{.local_id = peer_id, .remote_id = side.id, .remote_queue = own_queue};
     }},
    {"DREP", [](const one_side& side) -> message { return drep{.local_id = peer_id, .remote_id = side.id}; }},
    {"LAP",
     [](const one_side& side) -> message {
         return lap{.local_id = peer_id, .remote_id = side.id, .remote_queue = own_queue};
     }},
    {"APR", [](const one_side& side) -> message { return apr{.local_id = peer_id, .remote_id = side.id}; }},
    {"SIDR REP", [](const one_side& side) -> message { return sidr_rep{.request_id = side.id}; }},
};

const std::map<std::string, void (one_side::*)()> states{
    {"request_sent", &one_side::request_sent},
    {"request_delayed", &one_side::request_delayed},
    {"reply_received", &one_side::reply_received},
    {"established_active", &one_side::established_active},
    {"request_received", &one_side::request_received},
    {"reply_sent", &one_side::reply_sent},
    {"reply_delayed", &one_side::reply_delayed},
    {"established_passive", &one_side::established_passive},
    {"disconnect_sent", &one_side::disconnect_sent},
    {"time_wait", &one_side::time_wait},
    {"rejected", &one_side::rejected},
    {"gone", &one_side::gone},
};

/// What happens: the answer, the state that follows, the event. "-": none; "=": the same state.
struct outcome {
    std::string answer = "-", next = "=", event = "-";

    bool operator==(const outcome&) const = default;
};

std::ostream& operator<<(std::ostream& to, const outcome& one)
{
    return to << one.answer << ", " << one.next << ", " << one.event;
}

const char* name_of(event_kind kind)
{
    constexpr const char* names[]{"connect_request",  "connect_response", "established",    "rejected",
                                  "unreachable",      "disconnected",     "time_wait_over", "service_request",
                                  "service_response", "dropped"};
    return names[static_cast<std::size_t>(kind)];
}

std::string name_of(std::optional<state> now)
{
    constexpr const char* names[]{"request_sent", "request_delayed", "reply_received",  "request_received",
                                  "reply_sent",   "reply_delayed",   "established",     "disconnect_sent",
                                  "time_wait",    "resolve_sent",    "resolve_received"};
    return now ? names[static_cast<std::size_t>(*now)] : "gone";
}

outcome outcome_of(one_side& side, const message& arriving, std::uint64_t transaction)
{
    const auto before = side.current();
    side.receive(arriving, transaction);
    outcome seen;
    std::vector<std::string> answers, events;
    while (!side.under_test.out.sent.empty()) {
        const mad sent = side.under_test.take_sent();
        seen.answer = weftio::cm::name_of(sent.body);
        if (const rej* reason = std::get_if<rej>(&sent.body))
            seen.answer += " " + std::to_string(static_cast<unsigned>(reason->reason));
        answers.push_back(seen.answer);
    }
    while (const auto told = side.under_test.under_test.next_event())
        events.push_back(seen.event = name_of(told->kind));
    EXPECT_LE(answers.size(), 1u);
    EXPECT_LE(events.size(), 1u);
    if (side.current() != before)
        seen.next = name_of(side.current());
    return seen;
}

/// Pairs of state and message that do something; in all others the message is ignored.
const std::map<std::pair<std::string, std::string>, outcome> table{
    {{"gone", "REQ"}, {"-", "=", "connect_request"}},
    {{"gone", "REP"}, {"REJ 6", "=", "-"}},
    {{"gone", "DREQ"}, {"DREP", "=", "-"}},
    {{"gone", "LAP"}, {"APR", "=", "-"}},

    {{"request_sent", "MRA of REQ"}, {"-", "request_delayed", "-"}},
    {{"request_sent", "REP"}, {"-", "reply_received", "connect_response"}},
    {{"request_sent", "REJ"}, {"-", "gone", "rejected"}},
    {{"request_sent", "REJ stale"}, {"-", "time_wait", "rejected"}},

    {{"request_delayed", "REP"}, {"-", "reply_received", "connect_response"}},
    {{"request_delayed", "REJ"}, {"-", "gone", "rejected"}},
    {{"request_delayed", "REJ stale"}, {"-", "time_wait", "rejected"}},

    {{"reply_received", "REP"}, {"MRA", "=", "-"}},
    {{"reply_received", "REJ"}, {"-", "time_wait", "rejected"}},
    {{"reply_received", "REJ stale"}, {"-", "time_wait", "rejected"}},
    {{"reply_received", "DREQ"}, {"DREP", "time_wait", "disconnected"}},

    {{"established_active", "REP"}, {"RTU", "=", "-"}},
    {{"established_active", "REJ"}, {"-", "time_wait", "rejected"}},
    {{"established_active", "REJ stale"}, {"-", "time_wait", "rejected"}},
    {{"established_active", "DREQ"}, {"DREP", "time_wait", "disconnected"}},

    {{"request_received", "REQ"}, {"MRA", "=", "-"}},
    {{"request_received", "REJ"}, {"-", "gone", "rejected"}},
    {{"request_received", "REJ stale"}, {"-", "time_wait", "rejected"}},

    {{"reply_sent", "REQ"}, {"REP", "=", "-"}},
    {{"reply_sent", "MRA of REP"}, {"-", "reply_delayed", "-"}},
    {{"reply_sent", "REJ"}, {"-", "gone", "rejected"}},
    {{"reply_sent", "REJ stale"}, {"-", "time_wait", "rejected"}},
    {{"reply_sent", "RTU"}, {"-", "established", "established"}},
    {{"reply_sent", "DREQ"}, {"DREP", "time_wait", "disconnected"}},

    {{"reply_delayed", "REJ"}, {"-", "gone", "rejected"}},
    {{"reply_delayed", "REJ stale"}, {"-", "time_wait", "rejected"}},
    {{"reply_delayed", "RTU"}, {"-", "established", "established"}},
    {{"reply_delayed", "DREQ"}, {"DREP", "time_wait", "disconnected"}},

    {{"established_passive", "REJ"}, {"-", "time_wait", "rejected"}},
    {{"established_passive", "REJ stale"}, {"-", "time_wait", "rejected"}},
    {{"established_passive", "DREQ"}, {"DREP", "time_wait", "disconnected"}},

    {{"disconnect_sent", "REJ"}, {"-", "time_wait", "disconnected"}},
    {{"disconnect_sent", "REJ stale"}, {"-", "time_wait", "disconnected"}},
    {{"disconnect_sent", "DREQ"}, {"DREP", "time_wait", "disconnected"}},
    {{"disconnect_sent", "DREP"}, {"-", "time_wait", "disconnected"}},

    {{"time_wait", "DREQ"}, {"DREP", "=", "-"}},

    {{"rejected", "REQ"}, {"REJ 28", "=", "-"}},
};

/// A REQ of the peer in a state of the side that has asked is of another connection: it is as if there were none.
outcome expected(const std::string& now, const std::string& arriving)
{
    const auto found = table.find({now, arriving});
    if (found != table.end())
        return found->second;
    if (arriving == "LAP")
        return {"APR", "=", "-"};
    if (arriving != "REQ")
        return {};
    const bool asked =
        now == "request_sent" || now == "request_delayed" || now == "disconnect_sent" || now == "time_wait";
    return asked ? outcome{"-", "=", "connect_request"} : outcome{};
}

TEST(CmStates, EveryMessageInEveryState)
{
    for (const auto& [now, reach] : states) {
        for (const auto& [arriving, make] : messages) {
            one_side side;
            (side.*reach)();
            side.forget();
            if ((now == "established_active" || now == "reply_received") && arriving == "REQ")
                continue; // two answers: see the next test
            EXPECT_EQ(outcome_of(side, make(side), side.transaction), expected(now, arriving))
                << arriving << " in " << now;
        }
    }
}

/// What names the queue pair of the peer anew ends this connection and is rejected.
TEST(CmStates, RequestOfAQueuePairThatIsHeld)
{
    for (const bool established : {false, true}) {
        one_side side;
        established ? side.established_active() : side.reply_received();
        side.forget();
        side.receive(side.peers_req(), 0x999);
        if (established)
            EXPECT_EQ(side.under_test.take<dreq>().remote_queue, peer_queue);
        else
            EXPECT_EQ(side.under_test.take<rej>().remote_id, peer_id);
        EXPECT_EQ(side.under_test.take<rej>().reason, reject_reason::stale_connection);
        EXPECT_EQ(side.under_test.told().kind, established ? event_kind::disconnected : event_kind::rejected);
        EXPECT_EQ(side.current(), established ? state::disconnect_sent : state::time_wait);
        EXPECT_TRUE(side.under_test.silent());
    }
}

/// The same messages from another host, with another ID of the sender, or with another transaction number change
/// nothing and tell nothing.
TEST(CmStates, MessagesOfStrangersChangeNothing)
{
    for (const auto& [now, reach] : states) {
        for (const auto& [arriving, make] : messages) {
            if (arriving == "REQ" || now == "gone")
                continue;
            for (const int strange : {0, 1, 2}) {
                if (strange == 2 && (arriving == "DREQ" || arriving == "LAP"))
                    continue; // these begin an exchange of their own
                if (strange == 1 && (now == "request_sent" || arriving == "SIDR REP"))
                    continue; // the ID is not known yet, or there is none
                one_side side;
                (side.*reach)();
                side.forget();
                const auto before = side.current();
                message body = make(side);
                if (strange == 1) {
                    std::visit(
                        [](auto& of) {
                            if constexpr (requires { of.remote_id; })
                                of.local_id ^= 0x10000;
                        },
                        body);
                }
                end other(strange == 0 ? 3 : 2);
                side.under_test.receive(other, {side.transaction + (strange == 2 ? 1 : 0), body}, side.now);
                EXPECT_EQ(side.current(), before) << arriving << " in " << now << ", " << strange;
                EXPECT_FALSE(side.under_test.under_test.next_event()) << arriving << " in " << now << ", " << strange;
                if (arriving != "LAP") {
                    EXPECT_TRUE(side.under_test.out.sent.empty()) << arriving << " in " << now << ", " << strange;
                }
            }
        }
    }
}

TEST(CmStates, DisconnectNamesTheQueuePair)
{
    one_side side;
    side.established_passive();
    side.forget();
    side.receive(dreq{.local_id = peer_id, .remote_id = side.id, .remote_queue = own_queue + 1});
    EXPECT_TRUE(side.under_test.silent());
    EXPECT_EQ(side.current(), state::established);
    EXPECT_EQ(side.under_test.under_test.counted().strangers, 1u);
}

/// Alternate paths are refused by name where the connection is up, and the ID is unknown elsewhere.
TEST(CmStates, AlternatePathIsRefused)
{
    for (const bool established : {false, true}) {
        one_side side;
        established ? side.established_passive() : side.reply_sent();
        side.forget();
        side.receive(lap{.local_id = peer_id, .remote_id = side.id, .remote_queue = own_queue});
        const apr refused = side.under_test.take<apr>();
        EXPECT_EQ(refused.remote_id, peer_id);
        EXPECT_EQ(refused.local_id, side.id);
        EXPECT_EQ(refused.status,
                  established ? alternate_status::unsupported : alternate_status::invalid_communication_id);
    }
    one_side side;
    req request = side.peers_req();
    request.alternate.local_lid = 1;
    side.receive(request, 1);
    side.under_test.under_test.accept(side.under_test.told().id, {.queue = own_queue}, side.now);
    EXPECT_EQ(side.under_test.take<rep>().failover, 1);
}

/// Which calls each state allows: the user of a connection cannot bring it out of order.
TEST(CmStates, EveryCallInEveryState)
{
    const std::map<std::string, std::string> allowed{
        {"request_sent", "reject"},
        {"request_delayed", "reject"},
        {"reply_received", "reject delay ready"},
        {"established_active", "established disconnect"},
        {"request_received", "accept reject delay"},
        {"reply_sent", "reject established"},
        {"reply_delayed", "reject established"},
        {"established_passive", "established disconnect"},
        {"disconnect_sent", "disconnect"},
        {"time_wait", "disconnect"},
        {"rejected", "disconnect"},
    };
    using call = refusal (*)(manager&, std::uint32_t, std::uint64_t);
    const std::map<std::string, call> calls{
        {"accept", [](manager& to, std::uint32_t id, std::uint64_t now) { return to.accept(id, {.queue = 9}, now); }},
        {"reject", [](manager& to, std::uint32_t id, std::uint64_t now) { return to.reject(id, {}, now); }},
        {"delay", [](manager& to, std::uint32_t id, std::uint64_t) { return to.delay(id, 20); }},
        {"ready", [](manager& to, std::uint32_t id, std::uint64_t) { return to.ready(id); }},
        {"established", [](manager& to, std::uint32_t id, std::uint64_t) { return to.established(id); }},
        {"disconnect", [](manager& to, std::uint32_t id, std::uint64_t now) { return to.disconnect(id, {}, now); }},
        {"answer", [](manager& to, std::uint32_t id, std::uint64_t now) { return to.answer(id, {}, now); }},
    };
    for (const auto& [now, names] : allowed) {
        for (const auto& [name, make] : calls) {
            one_side side;
            (side.*states.at(now))();
            side.forget();
            const auto before = side.current();
            const bool may = (" " + names + " ").find(" " + name + " ") != std::string::npos;
            EXPECT_EQ(make(side.under_test.under_test, side.id, side.now), may ? refusal::none : refusal::wrong_state)
                << name << " in " << now;
            if (!may) {
                EXPECT_EQ(side.current(), before);
                EXPECT_TRUE(side.under_test.silent());
            }
        }
    }
}

/// From each state, a user who forgets the connection leaves nothing behind, and hears no more of it.
TEST(CmStates, DestroyedInEveryState)
{
    for (const auto& [now, reach] : states) {
        if (now == "gone")
            continue;
        one_side side;
        (side.*reach)();
        EXPECT_EQ(side.under_test.under_test.destroy(side.id, side.now), refusal::none);
        EXPECT_FALSE(side.under_test.under_test.next_event()) << now;
        for (int step = 0; step < 20 && side.under_test.under_test.size() != 0; ++step)
            side.under_test.under_test.expire(side.under_test.under_test.next_deadline());
        EXPECT_EQ(side.under_test.under_test.size(), 0u) << now;
        EXPECT_EQ(side.under_test.under_test.next_deadline(), 0u) << now;
        EXPECT_FALSE(side.under_test.under_test.next_event()) << now;
    }
}

} // namespace
