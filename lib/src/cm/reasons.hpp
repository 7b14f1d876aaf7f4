// Why connection management says no: to the peer (REJ, APR, SIDR REP), and to the user of this room.
#pragma once

#include <cstdint>

namespace weftio::cm {

/// Reason of a REJ (IBTA 12.6.7.2). The number is that of the wire; others may arrive.
enum class reject_reason : std::uint16_t {
    no_queue_pair = 1,
    no_eec = 2,
    no_resources = 3,
    timeout = 4,
    unsupported_request = 5,
    invalid_communication_id = 6,
    invalid_communication_instance = 7,
    invalid_service_id = 8,
    invalid_transport_service_type = 9,
    stale_connection = 10,
    no_rdc = 11,
    primary_gid_rejected = 12,
    primary_lid_rejected = 13,
    invalid_primary_sl = 14,
    invalid_primary_traffic_class = 15,
    invalid_primary_hop_limit = 16,
    invalid_primary_packet_rate = 17,
    alternate_gid_rejected = 18,
    alternate_lid_rejected = 19,
    invalid_alternate_sl = 20,
    invalid_alternate_traffic_class = 21,
    invalid_alternate_hop_limit = 22,
    invalid_alternate_packet_rate = 23,
    port_and_cm_redirection = 24,
    port_redirection = 25,
    invalid_path_mtu = 26,
    insufficient_responder_resources = 27,
    consumer_reject = 28,
    rnr_retry_count_rejected = 29,
    duplicate_communication_id = 30,
    invalid_class_version = 31,
    invalid_primary_flow_label = 32,
    invalid_alternate_flow_label = 33,
};

/// Status of an APR (IBTA 12.8.2). Alternate paths are never loaded here.
enum class alternate_status : std::uint8_t { loaded = 0, invalid_communication_id = 1, unsupported = 2 };

/// Status of a SIDR REP (IBTA 12.11.2).
enum class service_status : std::uint8_t {
    valid = 0,
    unknown_service = 1,
    rejected = 2,
    no_queue_pair = 3,
    redirected = 4,
    unsupported_version = 5,
};

/// Why a call of the user is refused.
enum class refusal : std::uint8_t {
    none,
    unknown_connection, ///< never made, or gone
    wrong_state,
    wrong_message, ///< a queue number, a path MTU or a service that no connection can have
    service_in_use,
    unknown_service,
    no_room, ///< settings::most_connections
};

/// Why bytes are not a message of connection management.
enum class mad_refusal : std::uint8_t {
    none,
    wrong_size,        ///< not 256 bytes
    wrong_base,        ///< base version is not 1
    other_class,       ///< not class 0x07
    unknown_version,   ///< class version is not 2
    wrong_method,      ///< not Send
    unknown_attribute, ///< no message of connection management
};

/// One sentence each, never null, for numbers that have no name, too.
const char* text_of(reject_reason reason) noexcept;
const char* text_of(alternate_status status) noexcept;
const char* text_of(service_status status) noexcept;
const char* text_of(refusal why) noexcept;
const char* text_of(mad_refusal why) noexcept;

} // namespace weftio::cm
