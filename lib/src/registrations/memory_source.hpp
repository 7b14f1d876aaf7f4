// Whose memory a cache registers: that of the host, or that of one GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "registrations/drains.hpp"
#include "registrations/node.hpp"
#include "weftio/device.hpp"

namespace weftio::registrations {

/// What is registered as one: pages, or an allocation.
struct unit {
    range bytes;
    memory_id id{};                                  ///< see node::id
    std::uint64_t frees = node::allocated_by_others; ///< see node::frees, and frees_once_found()
    std::uintptr_t context = 0;                      ///< see node::context
};

/// - Threads: any.
class memory_source {
 public:
    virtual ~memory_source() = default;
    virtual const std::string& name() const noexcept = 0; ///< "host", "cuda:0"
    virtual const char* units() const noexcept = 0;       ///< what is book-kept: "pages"
    virtual const char* setting() const noexcept = 0;     ///< of the budget, for error texts
    virtual std::size_t budget_bytes() const noexcept = 0;
    virtual std::size_t grain() const noexcept = 0; ///< a power of two: registrations are book-kept in such blocks
    /// Whose power of two no block of memory is shared by two units.
    virtual unsigned shift() const noexcept = 0;
    /// Of a GPU: units never merge, each has all local rights, and nothing waits for a copy engine.
    virtual bool is_gpu() const noexcept = 0;
    /// Throws weftio::error.
    virtual unit unit_of(const range& bytes) const = 0;
    /// Of a GPU: has its driver prepare an allocation that is not registered, which may wait for the GPU. Throws
    /// weftio::error.
    virtual void prepare(const unit&) const {}
    /// What node::frees is of a unit, once it is found by those who free. @param then  unit::frees
    virtual std::uint64_t frees_once_found(std::uint64_t then) const noexcept { return then; }
    /// How the cache learns that memory is gone, for telemetry.
    virtual const char* staleness() const noexcept = 0;
    /// @param bytes   of a unit  @param drains  where engines leave copies; nullptr: of the host
    /// Of the host: throws weftio::error.
    virtual memory adopt(const range& bytes, const std::shared_ptr<draining>& drains) const = 0;

    std::size_t booked(const range& bytes) const noexcept
    {
        return ((bytes.end + grain() - 1) & ~(grain() - 1)) - (bytes.begin & ~(grain() - 1));
    }
};

/// Pages.
class host_memory final : public memory_source {
 public:
    explicit host_memory(std::size_t budget_bytes);

    const std::string& name() const noexcept override { return name_; }
    const char* units() const noexcept override { return "pages"; }
    const char* setting() const noexcept override { return "budget_bytes"; }
    std::size_t budget_bytes() const noexcept override { return budget_; }
    std::size_t grain() const noexcept override { return page_bytes_; }
    unsigned shift() const noexcept override;
    bool is_gpu() const noexcept override { return false; }
    unit unit_of(const range& bytes) const override
    {
        return {{bytes.begin & ~(page_bytes_ - 1), (bytes.end + page_bytes_ - 1) & ~(page_bytes_ - 1)}};
    }
    const char* staleness() const noexcept override { return "close_first"; }
    memory adopt(const range& bytes, const std::shared_ptr<draining>& drains) const override;

 private:
    const std::string name_ = "host";
    const std::size_t budget_, page_bytes_;
    const device host_ = device::open("cpu");
};

} // namespace weftio::registrations
