// Queue pairs of UC: a failed entry leads to SQE, a failed receive to ERR, and what is lost to neither.
#include <gmock/gmock.h>

#include "posted_ends.hpp"

namespace weftio::test {

namespace {

using namespace reported_as;
using enum rdma_state;
using testing::ElementsAre;

class UnreliableStates : public testing::Test {
 protected:
    queue_pair& pair() { return *ends.pair(0); }

    verbs_ends ends{{.service = rdma_service::unreliable}};
};

} // namespace

TEST_F(UnreliableStates, FailAloneInSqeAndGoOnReceiving)
{
    ends.connect();
    ends.write(0, 10, 0);
    ends.post_bad(0);
    ends.write(0, 10, 0);
    ends.write(0, 10, 0);
    EXPECT_THAT(reported_by(ends.poll(0)),
                ElementsAre(reported{send_error, 1, malformed}, reported{send_error, 2, flushed},
                            reported{send_error, 3, flushed}));
    EXPECT_EQ(pair().state(), send_queue_error);
    ends.receive(0);
    ends.send(1, 10);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{received, 0, 0}));
    ends.write(0, 10, 0);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{send_error, 4, flushed}));
    pair().modify(ready_to_send);
    ends.receive(1);
    ends.send(0, 10);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{sent, 5, 0}));
    EXPECT_THAT(reported_by(ends.poll(1)), ElementsAre(reported{sent, 0, 0}, reported{received, 0, 0}));
}

TEST_F(UnreliableStates, FlushWhatWasPostedInSqeBeforeTheyGoBackToRts)
{
    ends.connect();
    ends.post_bad(0);
    ends.poll(0);
    ends.write(0, 10); // no turn sees it
    pair().modify(ready_to_send);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{send_error, 1, flushed}));
}

TEST_F(UnreliableStates, FlushEachReceiveOnceWhenErrFollowsSqeInMidMessage)
{
    ends.connect();
    ends.post_bad(0);
    ends.poll(0);
    for (unsigned each = 0; each < 2; ++each)
        ends.receive(0, 200000);
    ends.send(1, 200000);
    ends.ports.get(1).turn();
    ends.ports.get(0).turn();
    pair().modify(error);
    EXPECT_THAT(reported_by(ends.poll(0)),
                ElementsAre(reported{receive_error, 0, flushed}, reported{receive_error, 1, flushed}));
}

TEST_F(UnreliableStates, AreInErrWhenAReceiveFails)
{
    ends.connect();
    ends.receive(0, 100);
    ends.receive(0);
    ends.send(1, 101);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{receive_error, 0, WEFTIO_SYNDROME_LOCAL_LENGTH},
                                                       reported{receive_error, 1, flushed}));
    EXPECT_EQ(pair().state(), error);
    EXPECT_THAT(reported_by(ends.poll(1)), ElementsAre(reported{sent, 0, 0})) << "the peer hears nothing";
    EXPECT_EQ(ends.pair(1)->state(), ready_to_send);
    ends.write(0, 10);
    ends.receive(0);
    EXPECT_THAT(reported_by(ends.poll(0)),
                testing::UnorderedElementsAre(reported{send_error, 0, flushed}, reported{receive_error, 2, flushed}));
}

TEST_F(UnreliableStates, AreInErrWhenAReceiveNamesAWrongKey)
{
    ends.connect();
    ends.pair(0).post_receive(pointer(100, 0x77777777, 0));
    ends.send(1, 10);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{receive_error, 0, WEFTIO_SYNDROME_LOCAL_PROTECTION}));
    EXPECT_EQ(pair().state(), error);
}

TEST_F(UnreliableStates, StayInRtsWhenAMessageFindsNoReceiveOrMayNotWrite)
{
    ends.connect();
    ends.send(1, 10);
    ends.pair(1).post(WEFTIO_OPCODE_RDMA_WRITE,
                      {remote(ends.memory(0).address(), 0x77777777), ends.memory(1).local(0, 10)});
    ends.poll(1);
    EXPECT_EQ(pair().state(), ready_to_send);
    ends.receive(0);
    ends.send(1, 10);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{received, 0, 0}));
}

TEST_F(UnreliableStates, AreInErrWhenTheReceiveRecordClaimsTooMuchInSqe)
{
    ends.connect();
    ends.post_bad(0);
    ends.poll(0);
    weftio_store_release_sys_u32(ends.pair(0).record(), weftio_swap32(65));
    ends.send(1, 10);
    ends.poll(0);
    EXPECT_EQ(pair().state(), error);
}

} // namespace weftio::test
