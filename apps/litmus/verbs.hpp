// libibverbs, opened at run time, and one NIC that writes to itself: two connected pairs of queue pairs.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memory.hpp"

namespace weftio::litmus {

/// Why something cannot be done, as a sentence for the user.
class failure : public std::exception {
 public:
    explicit failure(std::string what) : what_(std::move(what)) {}
    const char* what() const noexcept override { return what_.c_str(); }

 private:
    std::string what_;
};

/// The peer's end has refused a request; the device says so of what it does not do in this memory.
class access_refused : public failure {
 public:
    using failure::failure;
};

// What the header makes macros of.
#undef ibv_reg_mr
#undef ibv_query_port

struct verbs {
    ibv_device** (*ibv_get_device_list)(int*);
    void (*ibv_free_device_list)(ibv_device**);
    const char* (*ibv_get_device_name)(ibv_device*);
    ibv_context* (*ibv_open_device)(ibv_device*);
    int (*ibv_close_device)(ibv_context*);
    int (*ibv_query_port)(ibv_context*, std::uint8_t, ibv_port_attr*);
    int (*ibv_query_device)(ibv_context*, ibv_device_attr*);
    int (*ibv_query_gid)(ibv_context*, std::uint8_t, int, ibv_gid*);
    ibv_pd* (*ibv_alloc_pd)(ibv_context*);
    int (*ibv_dealloc_pd)(ibv_pd*);
    ibv_mr* (*ibv_reg_mr)(ibv_pd*, void*, std::size_t, int);
    ibv_mr* (*ibv_reg_mr_iova2)(ibv_pd*, void*, std::size_t, std::uint64_t, unsigned); ///< nullptr: an older library
    ibv_mr* (*ibv_reg_dmabuf_mr)(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int); ///< the same
    int (*ibv_dereg_mr)(ibv_mr*);
    ibv_cq* (*ibv_create_cq)(ibv_context*, int, void*, ibv_comp_channel*, int);
    int (*ibv_destroy_cq)(ibv_cq*);
    ibv_qp* (*ibv_create_qp)(ibv_pd*, ibv_qp_init_attr*);
    int (*ibv_modify_qp)(ibv_qp*, ibv_qp_attr*, int);
    int (*ibv_destroy_qp)(ibv_qp*);
    const char* (*ibv_wc_status_str)(ibv_wc_status);

    /// The library, opened by the first call. Throws failure.
    static const verbs& library();
};

/// A port of a NIC of this machine.
struct port_options {
    std::string device{}; ///< "mlx5_0"; empty: the first
    std::uint8_t port = 1;
    int gid_index = -1; ///< -1: the first that is an IPv4 address, else the first
};

/// Memory that the NIC may access in every way.
class region {
 public:
    /// Memory of a GPU by its address (ibv_reg_mr), or, where the driver refuses that, by a dma-buf. Throws failure.
    /// @param relaxed  with IBV_ACCESS_RELAXED_ORDERING
    region(ibv_pd* domain, const words& memory, bool relaxed);
    ~region();
    region(const region&) = delete;
    region& operator=(const region&) = delete;

    std::uint32_t lkey() const { return mr_->lkey; }
    std::uint32_t rkey() const { return mr_->rkey; }
    bool by_dma_buf() const { return by_dma_buf_; }

 private:
    ibv_mr* by_address(ibv_pd* domain, const words& memory, bool relaxed);

    ibv_mr* mr_;
    bool by_dma_buf_ = false;
};

/// A queue pair and the completions of its two queues.
class end {
 public:
    end(ibv_context* context, ibv_pd* domain, std::uint32_t sends, std::uint32_t receives);
    ~end();
    end(const end&) = delete;
    end& operator=(const end&) = delete;

    std::uint32_t number() const { return pair_->qp_num; }
    void change(ibv_qp_attr& to, int mask, const char* what);
    void post(ibv_send_wr& first);
    /// One receive without bytes.
    void post_receive();
    /// Takes completions of sends, or of receives. Returns how many. Throws failure if one failed.
    unsigned take_sent(ibv_wc* to, unsigned most) { return take(sent_, to, most); }
    unsigned take_received(ibv_wc* to, unsigned most) { return take(received_, to, most); }

 private:
    static unsigned take(ibv_cq* from, ibv_wc* to, unsigned most);

    ibv_cq *sent_ = nullptr, *received_ = nullptr;
    ibv_qp* pair_ = nullptr;
};

/// What tells one NIC from another in a table.
struct nic_words {
    std::string name, firmware; ///< no firmware: the driver names none
    unsigned port = 0;
    int gid_index = 0;
};

/// The NIC, and two reliable connections of it with itself: `writer` writes to `target`; `flusher` reads for who
/// flushes.
class nic {
 public:
    /// @param depth  requests in flight of the writer
    nic(const port_options& options, std::uint32_t depth);
    ~nic();
    nic(const nic&) = delete;
    nic& operator=(const nic&) = delete;

    const std::string& name() const { return name_; }
    nic_words words() const { return {name_, firmware_, port_, gid_index_}; }
    ibv_pd* domain() const { return domain_; }
    end& writer() { return *ends_[0]; }
    end& target() { return *ends_[1]; }
    end& flusher() { return *ends_[2]; }
    /// Ends all requests in flight; none can be made any more.
    void disconnect() { ends_.clear(); }

 private:
    void connect(end& from, const end& to);
    void choose_gid(int wanted);

    const std::uint8_t port_;
    std::string name_, firmware_;
    ibv_context* context_ = nullptr;
    ibv_pd* domain_ = nullptr;
    ibv_port_attr attributes_{};
    std::uint8_t reads_ = 1; ///< READs and atomics in flight
    ibv_gid gid_{};
    int gid_index_ = 0;
    std::vector<std::unique_ptr<end>> ends_;
};

} // namespace weftio::litmus
