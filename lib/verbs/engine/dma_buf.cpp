// Memory regions of dma-bufs: of a GPU's memory, or of pages that the program could map.
#include <fcntl.h>
#include <fmt/format.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpus.hpp"
#include "methods.hpp"

namespace weftio::verbs {

namespace {

constexpr std::uint64_t page_mask = 4095;
constexpr std::uint32_t local_write = 1, rights_mask = 0xf,
                        relaxed_ordering = 1u << 20; // without bind, as Linux has it

struct asked_buffer {
    int descriptor;
    std::uint64_t offset, length, iova;
    std::uint32_t access;
};

/// @throws failure as Linux: EBADF, EINVAL
asked_buffer read_request(const method_call& what)
{
    const asked_buffer asked{.descriptor = static_cast<int>(what.number(UVERBS_ATTR_REG_DMABUF_MR_FD)),
                             .offset = what.number(UVERBS_ATTR_REG_DMABUF_MR_OFFSET),
                             .length = what.number(UVERBS_ATTR_REG_DMABUF_MR_LENGTH),
                             .iova = what.number(UVERBS_ATTR_REG_DMABUF_MR_IOVA),
                             .access = static_cast<std::uint32_t>(what.number(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS))};
    require((asked.offset & page_mask) == (asked.iova & page_mask), EINVAL);
    require((asked.access & ~(rights_mask | relaxed_ordering)) == 0, EINVAL);
    require(fcntl(asked.descriptor, F_GETFD) >= 0, EBADF);
    const off_t size = lseek(asked.descriptor, 0, SEEK_END);
    const auto bytes = static_cast<std::uint64_t>(size);
    require(size > 0 && asked.length != 0 && asked.length <= bytes && asked.offset <= bytes - asked.length, EINVAL);
    return asked;
}

/// A dma-buf does not tell whose memory it is. Programs register GPU memory with the GPU's address as iova. Any other
/// buffer is mapped.
void take_bytes(const context& in, const asked_buffer& asked, region& made)
{
    if (auto of_gpu = adopt_gpu_memory(reinterpret_cast<void*>(asked.iova), asked.length); of_gpu) {
        made.bytes = std::move(*of_gpu);
        return;
    }
    const std::uint64_t in_page = asked.offset & page_mask;
    const int may = PROT_READ | ((asked.access & local_write) != 0 ? PROT_WRITE : 0);
    made.mapped.emplace(asked.descriptor, asked.offset - in_page, asked.length + in_page, may);
    if (made.mapped->begin() == nullptr)
        throw error(
            errc::not_supported,
            fmt::format("weftio-run: REG_DMABUF_MR: {:#x} is no address of a GPU's memory that this process has "
                        "allocated, and the dma-buf cannot be mapped: pass the address of the memory as iova",
                        asked.iova));
    made.bytes = in.of.memory.adopt(made.mapped->begin() + in_page, asked.length);
}

} // namespace

void reg_dmabuf_mr(context& in, const method_call& what)
{
    const auto pd = static_cast<std::uint32_t>(what.number(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE));
    auto made = std::make_shared<region>();
    made->in = use(in.domains.find(pd));
    const asked_buffer asked = read_request(what);
    take_bytes(in, asked, *made);
    made->start = made->iova = asked.iova;
    made->length = asked.length;
    made->access = asked.access;
    made->registered.emplace(in.of.port, made->bytes,
                             region_options{.rights = static_cast<access>(asked.access & rights_mask),
                                            .domain = made->in->number,
                                            .iova = asked.iova});
    made->watched.emplace(); // its pages are not the program's to unmap
    const std::uint32_t handle = in.next_handle();
    what.answer(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, made->registered->lkey());
    what.answer(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, made->registered->lkey());
    what.answer_handle(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, handle);
    in.regions.add(handle, made);
}

} // namespace weftio::verbs
