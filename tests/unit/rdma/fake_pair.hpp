// A queue pair with a fake kernel: the test writes entries word by word and reads completions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nic/rdma_backend.hpp"
#include "ring_at.hpp"
#include "segments.hpp"
#include "software_nic.hpp"
#include "weftio/device/cqe.h"
#include "weftio/device/wqe.h"

namespace weftio::test {

/// The content of the collapsed completion.
struct sent_state {
    std::uint32_t position = 0; ///< low 16 bits of the position of the last entry that is done
    std::uint8_t syndrome = 0;
    std::uint8_t vendor = 0;
};

class fake_pair {
 public:
    static constexpr std::uint32_t receive_segments = 2;

    explicit fake_pair(const port& port, std::uint32_t depth = 64, std::uint32_t receive_depth = 64,
                       protection_domain domain = {}, rdma_service service = rdma_service::reliable)
        : send_words_(depth * 16), receive_words_(receive_depth * receive_segments * 4), received_(receive_depth),
          depth_(depth), domain_(domain)
    {
        freshen();
        queue_ = software_nic(port).make_rdma_queue(rings(), service);
    }
    fake_pair(const fake_pair&) = delete;
    fake_pair& operator=(const fake_pair&) = delete;
    ~fake_pair() { close(); }

    void close()
    {
        if (std::exchange(open_, false))
            queue_->close();
    }
    nic::rdma_queue& nic() const { return *queue_; }
    std::uint32_t number() const { return queue_->number(); }
    void connect(const nic::rdma_connection& to)
    {
        queue_->modify(rdma_state::ready_to_receive, to);
        queue_->modify(rdma_state::ready_to_send, to);
    }
    void restart()
    {
        freshen();
        queue_->restart(rings());
    }

    /// Writes an entry. Returns its position.
    std::uint32_t post(std::uint32_t opcode, const std::vector<segment>& body, std::uint32_t immediate = 0,
                       std::uint8_t flags = 0)
    {
        const auto segments = static_cast<std::uint32_t>(body.size() + 1);
        const std::uint32_t position = next_;
        std::vector<segment> all{
            {{opcode | (position & 0xffff) << 8, number() << 8 | segments, std::uint32_t{flags}, immediate}}};
        all.insert(all.end(), body.begin(), body.end());
        for (std::uint32_t at = 0; at < all.size() * 4; ++at)
            send_words_[(position * 16 + at) % send_words_.size()] = weftio_swap32(all[at / 4].words[at % 4]);
        next_ += (segments + 3) / 4;
        return position;
    }
    /// Changes a word of an entry.
    void spoil(std::uint32_t position, std::uint32_t word)
    {
        send_words_[(position * 16 + word) % send_words_.size()] ^= weftio_swap32(0x40);
    }
    void push() { push_as(next_); }
    /// Writes any value to the send doorbell record.
    void push_as(std::uint32_t index) { weftio_store_release_sys_u32(&send_record_, weftio_swap32(index & 0xffff)); }
    std::uint32_t posted() const { return next_; }

    /// Posts a receive entry of one or two pieces.
    void post_receive(const std::vector<segment>& pieces)
    {
        const std::uint32_t depth = static_cast<std::uint32_t>(received_.size());
        const std::uint32_t at = receives_posted_++ % depth * receive_segments * 4;
        for (std::uint32_t piece = 0; piece < receive_segments; ++piece)
            for (std::uint32_t word = 0; word < 4; ++word)
                receive_words_[at + piece * 4 + word] = weftio_swap32(
                    (piece < pieces.size() ? pieces[piece] : pointer(0, WEFTIO_LKEY_INVALID, 0)).words[word]);
        weftio_store_release_sys_u32(&receive_record_, weftio_swap32(receives_posted_));
    }
    /// Writes any value to the receive doorbell record.
    void claim_receives(std::uint32_t posted)
    {
        weftio_store_release_sys_u32(&receive_record_, weftio_swap32(posted & 0xffff));
    }
    std::uint32_t receives_waiting() const { return receives_posted_ - receives_read_; }

    /// The next receive completion, if there is one.
    std::optional<weftio_cqe> received()
    {
        const auto depth = static_cast<std::uint32_t>(received_.size());
        weftio_cqe& cqe = received_[receives_read_ % depth];
        if (!weftio_cqe_is_published(weftio_load_acquire_sys_u32(&cqe.publication), receives_read_ / depth))
            return std::nullopt;
        ++receives_read_;
        return cqe;
    }
    sent_state sent() const
    {
        const std::uint32_t publication = weftio_load_acquire_sys_u32(&completion_.publication);
        if (weftio_cqe_opcode(publication) == WEFTIO_CQE_OPCODE_REQUESTER)
            return {.position = weftio_cqe_wqe_counter(publication)};
        const std::uint64_t error = weftio_swap64(completion_.timestamp_be);
        return {weftio_cqe_wqe_counter(publication), static_cast<std::uint8_t>(error),
                static_cast<std::uint8_t>(error >> 8)};
    }
    /// The next failure that was reported to the host; syndrome 0: none.
    nic::send_outcome reported() const
    {
        nic::send_outcome outcome;
        queue_->next(outcome);
        return outcome;
    }

 private:
    void freshen()
    {
        std::fill(received_.begin(), received_.end(), weftio_cqe{});
        for (weftio_cqe& cqe : received_)
            cqe.publication = std::uint32_t{WEFTIO_CQE_NEVER_WRITTEN} << 24;
        completion_.publication = weftio_cqe_publication(0xffff, WEFTIO_CQE_OPCODE_REQUESTER, 0);
        send_record_ = receive_record_ = 0;
        next_ = receives_posted_ = receives_read_ = 0;
    }
    nic::rdma_rings rings()
    {
        nic::rdma_rings rings;
        rings.send.entries = ring_at(send_words_.data(), send_words_.size());
        rings.send.depth = depth_;
        rings.send.dbrec = ring_at(&send_record_);
        rings.send.completion = ring_at(&completion_);
        rings.send.domain = domain_;
        rings.receive = {.entries = ring_at(receive_words_.data(), receive_words_.size()),
                         .depth = static_cast<std::uint32_t>(received_.size()),
                         .segments = receive_segments,
                         .dbrec = ring_at(&receive_record_),
                         .completions = ring_at(received_.data(), received_.size())};
        return rings;
    }

    std::vector<std::uint32_t> send_words_, receive_words_;
    std::vector<weftio_cqe> received_;
    std::uint32_t depth_;
    protection_domain domain_;
    alignas(64) weftio_cqe completion_{};
    std::uint32_t send_record_ = 0, receive_record_ = 0;
    std::uint32_t next_ = 0, receives_posted_ = 0, receives_read_ = 0;
    std::shared_ptr<nic::rdma_queue> queue_;
    bool open_ = true;
};

} // namespace weftio::test
