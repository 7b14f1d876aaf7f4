// The commands that nodes execute, by their names in rdma/ib_user_verbs.h.
#pragma once

#include <cstdint>
#include <string>

#include "call.hpp"
#include "context.hpp"

namespace weftio::verbs {

struct command_row {
    std::uint32_t number;
    bool extended;
    const char* name;
    command_form form;
    /// @pre the mutex of the context is held, except for GET_CONTEXT
    void (*execute)(context&, call&);
};

/// nullptr: unknown command.
const command_row* find_command(const call& wanted) noexcept;
/// Name of a command, also of one that is not supported, such as EX_CREATE_QP.
std::string name_of_command(const call& wanted);

void get_context(context& in, call& what);
void query_device(context& in, call& what);
void query_device_extended(context& in, call& what);
void query_port(context& in, call& what);

void alloc_pd(context& in, call& what);
void dealloc_pd(context& in, call& what);
void reg_mr(context& in, call& what);
void rereg_mr(context& in, call& what);
void dereg_mr(context& in, call& what);
void alloc_mw(context& in, call& what);
void dealloc_mw(context& in, call& what);

void create_comp_channel(context& in, call& what);
void create_cq(context& in, call& what);
void create_cq_extended(context& in, call& what);
void resize_cq(context& in, call& what);
void destroy_cq(context& in, call& what);

void create_srq(context& in, call& what);
void create_srq_extended(context& in, call& what);
void modify_srq(context& in, call& what);
void query_srq(context& in, call& what);
void destroy_srq(context& in, call& what);
void create_ah(context& in, call& what);
void destroy_ah(context& in, call& what);
void attach_mcast(context& in, call& what);
void detach_mcast(context& in, call& what);

void create_qp(context& in, call& what);
void create_qp_extended(context& in, call& what);
void modify_qp(context& in, call& what);
void query_qp(context& in, call& what);
void destroy_qp(context& in, call& what);

} // namespace weftio::verbs
