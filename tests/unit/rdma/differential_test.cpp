// Random operations of both ends, beside a plain model of both memories.
#include <algorithm>

#include "two_ends.hpp"

namespace weftio::test {

namespace {

constexpr std::size_t quarter =
    two_ends::memory_bytes / 4; ///< of a memory: what peers reach, what is sent, what is read

/// One end's memory as it should be, and where each part of it begins.
struct model {
    static constexpr std::size_t outgoing = 2 * quarter, landing = 3 * quarter; ///< before them: what peers reach

    std::vector<std::uint8_t> bytes;
};

/// Batches of operations from one end, then from the other. What an end sends from is not what operations change, and
/// what answers are written to is used once in a batch: so the model may execute one operation after the other.
class RdmaDifferential : public testing::TestWithParam<std::tuple<bool, unsigned>> {
 protected:
    RdmaDifferential() : ends(std::get<0>(GetParam())), random(std::get<1>(GetParam()))
    {
        ends.connect();
        for (unsigned end = 0; end < 2; ++end)
            models[end].bytes = ends.memory(end).copy();
    }
    std::size_t below(std::size_t end) { return random() % end; }
    std::size_t some_bytes()
    {
        constexpr std::size_t sizes[]{0, 1, 3, 8, 255, 1023, 1024, 1025, 2048, 3000};
        return sizes[below(std::size(sizes))];
    }
    segment local(std::size_t at, std::size_t bytes) { return ends.memory(from).local(at, bytes); }
    /// Pieces of `bytes` bytes from `at` on.
    std::vector<segment> pieces(std::size_t at, std::size_t bytes)
    {
        if (bytes == 0)
            return {};
        const std::size_t first = 1 + below(bytes);
        if (first == bytes)
            return {local(at, bytes)};
        return {local(at, first), local(at + first, bytes - first)};
    }
    void copy(std::size_t at, std::size_t bytes, std::size_t to)
    {
        std::copy_n(ours().begin() + static_cast<std::ptrdiff_t>(at), bytes,
                    theirs().begin() + static_cast<std::ptrdiff_t>(to));
    }
    std::vector<std::uint8_t>& ours() { return models[from].bytes; }
    std::vector<std::uint8_t>& theirs() { return models[1 - from].bytes; }
    void post(std::uint32_t opcode, std::vector<segment> head, const std::vector<segment>& data,
              std::uint32_t immediate = 0)
    {
        head.insert(head.end(), data.begin(), data.end());
        // What was read before must not change before it was read.
        const std::uint8_t flags = reads ? 2 << 5 : 0;
        last = ends.queue(from).post(opcode, head, immediate, flags);
    }

    void write();
    void read();
    void change();
    void send();
    void flush();
    void one_operation();
    void batch();

    two_ends ends;
    std::minstd_rand random;
    std::array<model, 2> models;
    unsigned from = 0;
    bool reads = false;     ///< the batch has a READ
    std::size_t landed = 0; ///< bytes of the landing that are used
    std::uint32_t last = 0, immediates = 0;
};

void RdmaDifferential::write()
{
    const std::size_t bytes = some_bytes(), at = model::outgoing + below(quarter - bytes),
                      to = below(2 * quarter - bytes);
    copy(at, bytes, to);
    post(WEFTIO_OPCODE_RDMA_WRITE, {ends.memory(1 - from).remote_at(to)}, pieces(at, bytes));
}

void RdmaDifferential::read()
{
    const std::size_t bytes = some_bytes(), at = below(2 * quarter - bytes), to = model::landing + landed;
    std::copy_n(theirs().begin() + static_cast<std::ptrdiff_t>(at), bytes,
                ours().begin() + static_cast<std::ptrdiff_t>(to));
    post(WEFTIO_OPCODE_RDMA_READ, {ends.memory(1 - from).remote_at(at)}, pieces(to, bytes));
    landed += bytes;
    reads = true;
}

void RdmaDifferential::change()
{
    const std::size_t at = below(2 * quarter / 8) * 8, to = model::landing + landed;
    std::uint64_t word = 0;
    std::memcpy(&word, &theirs()[at], sizeof word);
    std::memcpy(&ours()[to], &word, sizeof word);
    const bool swaps = below(2) != 0, equal = below(2) != 0;
    const std::uint64_t operand = random() * 0x123456789abcdefull;
    const std::uint64_t compare = equal ? word : ~word;
    const std::uint64_t now = swaps ? (equal ? operand : word) : word + operand;
    std::memcpy(&theirs()[at], &now, sizeof now);
    post(swaps ? WEFTIO_OPCODE_COMPARE_SWAP : WEFTIO_OPCODE_FETCH_ADD,
         {ends.memory(1 - from).remote_at(at), atomic(operand, compare)}, {local(to, sizeof word)});
    landed += sizeof word;
}

void RdmaDifferential::send()
{
    const std::size_t bytes = some_bytes(), at = model::outgoing + below(quarter - bytes),
                      to = below(2 * quarter - 3000);
    copy(at, bytes, to);
    const end_memory& there = ends.memory(1 - from);
    const std::size_t first = 1 + below(2999);
    ends.queue(1 - from).post_receive({there.local(to, first), there.local(to + first, 3000 - first)});
    post(WEFTIO_OPCODE_SEND_IMMEDIATE, {}, pieces(at, bytes), immediates++);
}

/// Changes no byte.
void RdmaDifferential::flush()
{
    post(WEFTIO_OPCODE_DUMP, {}, {local(below(3 * quarter), 1 + below(quarter))});
}

void RdmaDifferential::one_operation()
{
    switch (below(5)) {
        case 0: return write();
        case 1: return read();
        case 2: return change();
        case 3: return flush();
        default: return send();
    }
}

void RdmaDifferential::batch()
{
    reads = false;
    landed = 0;
    const std::uint32_t before = immediates;
    for (std::size_t left = 1 + below(16); left != 0 && landed + 3000 < quarter; --left)
        one_operation();
    ends.queue(from).push();
    ASSERT_TRUE(ends.run_until([&] { return ends.queue(from).sent().position == (last & 0xffff); }));
    for (std::uint32_t each = before; each != immediates; ++each) {
        const std::optional<weftio_cqe> cqe = ends.queue(1 - from).received();
        ASSERT_TRUE(cqe);
        ASSERT_EQ(weftio_swap32(cqe->immediate_be), each);
    }
}

} // namespace

TEST_P(RdmaDifferential, LeavesEveryByteAsTheModelSays)
{
    for (unsigned batches = 0; batches < 500; ++batches) {
        from = batches % 2;
        ASSERT_NO_FATAL_FAILURE(batch()) << batches;
        for (unsigned end = 0; end < 2; ++end)
            ASSERT_EQ(ends.memory(end).copy(), models[end].bytes) << "batch " << batches << ", end " << end;
    }
    for (unsigned end = 0; end < 2; ++end) {
        const nic::rdma_counters counted = ends.queue(end).nic().counters();
        expect_conserved(counted);
        EXPECT_EQ(counted.packet_seq_err + counted.implied_nak_seq_err, 0u) << "nothing was lost";
    }
}

INSTANTIATE_TEST_SUITE_P(Of, RdmaDifferential, testing::Combine(testing::Bool(), testing::Values(1u, 2u, 3u)));

} // namespace weftio::test
