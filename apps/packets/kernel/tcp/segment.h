/* TCP headers: fields and options of one segment, in host order. */
#pragma once

#include "../bytes.h"

enum tcp_flag { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_PSH = 8, TCP_ACK = 16, TCP_URG = 32 };

enum {
    TCP_HEADER_BYTES = 20,      /**< without options */
    TCP_HEADER_MOST_BYTES = 60, /**< with options; tcp_write needs at most 44 */
    TCP_NO_WINDOW_SCALE = 255   /**< tcp_segment::window_scale of a segment without the option */
};

/** Why tcp_parse refuses a header. */
enum tcp_reason {
    TCP_PARSED = 0,
    TCP_CUT_HEADER = 1, /**< fewer bytes than a header, or than its data offset says */
    TCP_BAD_OFFSET = 2, /**< the data offset is less than a header without options */
    TCP_BAD_OPTION = 3  /**< an option has a length below 2, past the header's end, or wrong for its kind */
};

/** One segment without its payload. What is received names the peer as source, what is sent names it as destination. */
struct tcp_segment {
    weftio_u32 sequence, acknowledgment;
    weftio_u32 payload_bytes;
    weftio_u32 ts_value, ts_echo; /**< RFC 7323, where has_timestamps is 1 */
    weftio_u16 source_port, destination_port;
    weftio_u16 window; /**< as it is on the wire, not scaled */
    weftio_u16 mss;    /**< 0: no such option */
    weftio_u8 flags;   /**< bits of enum tcp_flag */
    weftio_u8 header_bytes;
    weftio_u8 window_scale; /**< TCP_NO_WINDOW_SCALE: no such option */
    weftio_u8 sack_permitted;
    weftio_u8 has_timestamps;
    weftio_u8 reserved[3];
};

/** An empty segment without options. */
WEFTIO_FN void tcp_clear(struct tcp_segment* segment)
{
    struct tcp_segment none = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, TCP_NO_WINDOW_SCALE, 0, 0, {0, 0, 0}};

    *segment = none;
}

/** Reads an option of `bytes` bytes. Returns 0 when the length is wrong for its kind; kinds not known are skipped. */
WEFTIO_FN weftio_u32 tcp_parse_option(const WEFTIO_GLOBAL weftio_u8* option, weftio_u32 bytes,
                                      struct tcp_segment* segment)
{
    switch (option[0]) {
        case 2:
            if (bytes == 4)
                segment->mss = (weftio_u16)be16_get(option + 2);
            return bytes == 4;
        case 3:
            if (bytes == 3) /* RFC 7323 2.3: more than 14 counts as 14 */
                segment->window_scale = option[2] < 14 ? option[2] : 14;
            return bytes == 3;
        case 4: segment->sack_permitted = 1; return bytes == 2;
        case 8:
            if (bytes != 10)
                return 0;
            segment->has_timestamps = 1;
            segment->ts_value = be32_get(option + 2);
            segment->ts_echo = be32_get(option + 6);
            return 1;
        default: return 1;
    }
}

/** Reads the options in [20, header_bytes). Returns 0 when a length lies. At most 40 iterations. */
WEFTIO_FN weftio_u32 tcp_parse_options(const WEFTIO_GLOBAL weftio_u8* header, struct tcp_segment* segment)
{
    weftio_u32 at = TCP_HEADER_BYTES;

    while (at < segment->header_bytes && header[at] != 0) {
        if (header[at] == 1) { /* no operation: the one kind without a length */
            ++at;
            continue;
        }
        if (at + 2 > segment->header_bytes || header[at + 1] < 2 || at + header[at + 1] > segment->header_bytes)
            return 0;
        if (!tcp_parse_option(header + at, header[at + 1], segment))
            return 0;
        at += header[at + 1];
    }
    return 1;
}

/**
 * Reads the header of a segment. Reads nothing beyond `bytes`; the payload follows at `header_bytes`. The checksum is
 * the caller's.
 *
 * @param bytes  header and payload, as the IP header says
 * @return TCP_PARSED, or why the segment must be dropped (enum tcp_reason); `segment` is then undefined
 */
WEFTIO_FN weftio_u32 tcp_parse(const WEFTIO_GLOBAL weftio_u8* header, weftio_u32 bytes, struct tcp_segment* segment)
{
    tcp_clear(segment);
    if (bytes < TCP_HEADER_BYTES)
        return TCP_CUT_HEADER;
    segment->header_bytes = (weftio_u8)((header[12] >> 4) * 4);
    if (segment->header_bytes < TCP_HEADER_BYTES)
        return TCP_BAD_OFFSET;
    if (segment->header_bytes > bytes)
        return TCP_CUT_HEADER;
    segment->source_port = (weftio_u16)be16_get(header);
    segment->destination_port = (weftio_u16)be16_get(header + 2);
    segment->sequence = be32_get(header + 4);
    segment->acknowledgment = be32_get(header + 8);
    segment->flags = header[13] & 63;
    segment->window = (weftio_u16)be16_get(header + 14);
    segment->payload_bytes = bytes - segment->header_bytes;
    return tcp_parse_options(header, segment) ? TCP_PARSED : TCP_BAD_OPTION;
}

/** Writes the options of `segment` at `at`, padded to four bytes each. Returns their bytes, at most 24. */
WEFTIO_FN weftio_u32 tcp_write_options(WEFTIO_GLOBAL weftio_u8* at, const struct tcp_segment* segment)
{
    weftio_u32 bytes = 0;

    if (segment->mss != 0) {
        be32_put(at, 0x02040000u | segment->mss);
        bytes += 4;
    }
    if (segment->window_scale != TCP_NO_WINDOW_SCALE) {
        be32_put(at + bytes, 0x01030300u | segment->window_scale);
        bytes += 4;
    }
    if (segment->sack_permitted) {
        be32_put(at + bytes, 0x01010402u);
        bytes += 4;
    }
    if (segment->has_timestamps) {
        be32_put(at + bytes, 0x0101080au);
        be32_put(at + bytes + 4, segment->ts_value);
        be32_put(at + bytes + 8, segment->ts_echo);
        bytes += 12;
    }
    return bytes;
}

/**
 * Writes the header of a segment; the payload goes behind it. The checksum is 0, for the NIC or the caller to fill in.
 *
 * @return bytes of the header: 20..44
 */
WEFTIO_FN weftio_u32 tcp_write(WEFTIO_GLOBAL weftio_u8* header, const struct tcp_segment* segment)
{
    weftio_u32 bytes = TCP_HEADER_BYTES + tcp_write_options(header + TCP_HEADER_BYTES, segment);

    be16_put(header, segment->source_port);
    be16_put(header + 2, segment->destination_port);
    be32_put(header + 4, segment->sequence);
    be32_put(header + 8, segment->acknowledgment);
    header[12] = (weftio_u8)(bytes / 4 << 4);
    header[13] = segment->flags;
    be16_put(header + 14, segment->window);
    be32_put(header + 16, 0); /* checksum, urgent pointer */
    return bytes;
}
