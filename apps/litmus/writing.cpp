#include "writing.hpp"

#include <algorithm>
#include <thread>

namespace weftio::litmus {

namespace {

ibv_send_wr write_of(ibv_sge& from, const std::uint64_t* to, std::uint32_t key)
{
    ibv_send_wr made{};
    made.opcode = IBV_WR_RDMA_WRITE;
    made.sg_list = &from;
    made.num_sge = 1;
    made.wr.rdma = {reinterpret_cast<std::uintptr_t>(to), key};
    return made;
}

ibv_send_wr read_of(ibv_sge& to, const std::uint64_t* from, std::uint32_t key)
{
    ibv_send_wr made = write_of(to, from, key);
    made.opcode = IBV_WR_RDMA_READ;
    return made;
}

} // namespace

writing::writing(stage& of) : stage_(of)
{
    if (of.what.by != writer::copy_engine && of.what.by != writer::copy_engine_nic_flag)
        return;
    of.use_owner();
    copies_.emplace();
    round_in_gpu_.emplace(1, words::of_gpu);
}

void writing::write_round(std::uint64_t round)
{
    const std::uint32_t pairs = stage_.options.pairs;
    std::fill_n(stage_.source.at(0), std::size_t{pairs} * stage_.words_each, word_of(round));
    *stage_.source_of_flags() = round;
    if (copies_)
        copies_->to_gpu(round_in_gpu_->at(0), stage_.source_of_flags(), 8);
    for (std::uint32_t pair = 0; pair < pairs && !stage_.over; ++pair)
        if (copies_)
            copy(pair);
        else if (stage_.what.by == writer::write_second_flag)
            write_data(pair);
        else
            write(pair, pair + 1 == pairs);
    if (copies_)
        copies_->wait();
    else if (stage_.what.by == writer::write_second_flag)
        write_flags_of_second();
    else
        wait_for_sent(stage_.first);
}

/// Data, then the flag; between them, where it is asked for, a READ that the flag waits for.
void writing::write(std::uint32_t pair, bool signaled)
{
    const bool with_immediate = stage_.what.by == writer::write_with_immediate;
    const bool reads = stage_.what.how == flush::read_same_pair;
    ibv_sge from_source =
        piece(stage_.source.at(std::size_t{pair} * stage_.words_each), stage_.words_each * 8, stage_.source_region);
    ibv_sge from_end = piece(stage_.source_of_flags(), 8, stage_.source_region);
    ibv_sge to_scratch = piece(stage_.scratch.at(0), 8, stage_.scratch_region);
    ibv_send_wr bytes = write_of(from_source, stage_.data(pair), stage_.target_region.rkey());
    ibv_send_wr read = read_of(to_scratch, stage_.last_word(pair), stage_.target_region.rkey());
    ibv_send_wr notice = write_of(from_end, stage_.flag(pair), stage_.flag_key());
    if (with_immediate) {
        notice = bytes; // the data are those of the same request
        notice.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        notice.imm_data = pair;
        notice.num_sge = reads ? 0 : 1;
    } else if (stage_.what.by == writer::write_then_atomic) {
        notice.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        notice.sg_list = &to_scratch;
        notice.wr.atomic = {reinterpret_cast<std::uintptr_t>(stage_.flag(pair)), 1, 0, stage_.flag_key()};
    }
    notice.send_flags = (reads ? IBV_SEND_FENCE : 0) | (signaled ? IBV_SEND_SIGNALED : 0);
    ibv_send_wr* first = &notice;
    if (reads) {
        read.next = first;
        first = &read;
    }
    if (!with_immediate || reads) {
        bytes.next = first;
        first = &bytes;
    }
    stage_.first.writer().post(*first);
}

/// Data by the first NIC. The last request of a pair has a completion.
void writing::write_data(std::uint32_t pair)
{
    const bool reads = stage_.what.how == flush::read_same_pair;
    ibv_sge from_source =
        piece(stage_.source.at(std::size_t{pair} * stage_.words_each), stage_.words_each * 8, stage_.source_region);
    ibv_sge to_scratch = piece(stage_.scratch.at(0), 8, stage_.scratch_region);
    ibv_send_wr bytes = write_of(from_source, stage_.data(pair), stage_.target_region.rkey());
    ibv_send_wr read = read_of(to_scratch, stage_.last_word(pair), stage_.target_region.rkey());
    (reads ? read : bytes).send_flags = IBV_SEND_SIGNALED;
    bytes.next = reads ? &read : nullptr;
    stage_.first.writer().post(bytes);
}

/// The second NIC writes a pair's flag once the first says that the data are written.
void writing::write_flags_of_second()
{
    for (std::uint32_t pair = 0; pair < stage_.options.pairs && !stage_.over; ++pair) {
        wait_for_sent(stage_.first);
        write_flag_by(*stage_.second, pair, *stage_.second_source, stage_.second_flag_key());
    }
    for (std::uint32_t pair = 0; pair < stage_.options.pairs && !stage_.over; ++pair)
        wait_for_sent(*stage_.second);
}

void writing::write_flag_by(nic& by, std::uint32_t pair, const region& source, std::uint32_t key)
{
    ibv_sge from_end = piece(stage_.source_of_flags(), 8, source);
    ibv_send_wr notice = write_of(from_end, stage_.flag(pair), key);
    notice.send_flags = IBV_SEND_SIGNALED;
    by.writer().post(notice);
}

/// The flag comes by the same stream, or by the NIC when the copy of the data has ended.
void writing::copy(std::uint32_t pair)
{
    copies_->to_gpu(stage_.data(pair), stage_.source.at(std::size_t{pair} * stage_.words_each),
                    std::size_t{stage_.words_each} * 8);
    if (stage_.what.by == writer::copy_engine_nic_flag) {
        copies_->wait();
        write_flag_by(stage_.first, pair, stage_.source_region, stage_.flag_key());
        wait_for_sent(stage_.first);
    } else if (stage_.what.flag_in_gpu()) {
        copies_->to_gpu(stage_.flag(pair), stage_.source_of_flags(), 8);
    } else {
        copies_->from_gpu(stage_.flag(pair), round_in_gpu_->at(0), 8);
    }
}

void writing::wait_for_sent(nic& of)
{
    ibv_wc done{};
    while (of.writer().take_sent(&done, 1) == 0 && !stage_.over)
        std::this_thread::yield();
}

void write_once(stage& to)
{
    ibv_sge from_source = piece(to.source.at(0), to.words_each * 8, to.source_region);
    ibv_sge to_scratch = piece(to.scratch.at(0), 8, to.scratch_region);
    ibv_send_wr bytes = write_of(from_source, to.data(0), to.target_region.rkey());
    ibv_send_wr read = read_of(to_scratch, to.last_word(0), to.target_region.rkey());
    read.send_flags = IBV_SEND_SIGNALED;
    bytes.next = &read; // or these zeros might come behind the data of the first round
    to.first.writer().post(bytes);
    ibv_wc done{};
    while (to.first.writer().take_sent(&done, 1) == 0)
        std::this_thread::yield();
}

} // namespace weftio::litmus
