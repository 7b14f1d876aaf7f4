/*
 * Reads the heads of HTTP/1.1 and 1.0 requests (RFC 9110, RFC 9112). Part of the kernels of weftio-packets.
 *
 * 1. http_scan() finds where a head ends. It goes on where it stopped when more bytes have come.
 * 2. http_parse() reads a head that has ended, and says what is asked for or which error is the answer.
 *
 * What is read depends on the bytes alone, not on how they were cut into segments. Only bytes in front of
 * http_scan.bytes are looked at, each a constant number of times.
 */
#pragma once

#include "kernel/http/text.h"

/** Limits of a server. The host writes them, kernels read them. */
struct http_limits {
    weftio_u64 request_ns;   /**< from the first byte of a head to its last; else 408 */
    weftio_u32 head_bytes;   /**< longest head with its empty line; else 431. At most 65,535 */
    weftio_u32 target_bytes; /**< longest request target; else 414 */
    weftio_u32 body_bytes;   /**< longest body, which is skipped; else 413 */
    weftio_u32 padding;
};

/** Answers that are the same for every site; numbers of its first items. HTTP_FOUND: look the path up. */
enum http_fixed {
    HTTP_FOUND = 0,
    HTTP_BAD_REQUEST,        /**< 400 */
    HTTP_NOT_FOUND,          /**< 404 */
    HTTP_METHOD_NOT_ALLOWED, /**< 405 */
    HTTP_REQUEST_TIMEOUT,    /**< 408 */
    HTTP_CONTENT_TOO_LARGE,  /**< 413 */
    HTTP_URI_TOO_LONG,       /**< 414 */
    HTTP_HEAD_TOO_LARGE,     /**< 431 */
    HTTP_NOT_IMPLEMENTED,    /**< 501 */
    HTTP_UNAVAILABLE,        /**< 503: no snapshot is free for /stats */
    HTTP_VERSION_UNKNOWN,    /**< 505 */
    HTTP_STATS,              /**< 200: written by the kernel */
    HTTP_FIXED_ITEMS
};

/** Of a request line, besides its target: a method of 32 characters, two blanks, version and one byte more. */
#define HTTP_LINE_REST (32u + 2 + 8 + 1)

/** Where http_scan() stands. All zeros: in front of a request. */
struct http_scan {
    weftio_u16 bytes;      /**< bytes looked at */
    weftio_u16 line_begin; /**< of the request line: empty lines may precede it (RFC 9112 2.2) */
    weftio_u8 in_line;     /**< the current line has a character */
    weftio_u8 after_cr;    /**< the last byte was CR, so LF must follow */
    weftio_u8 lines;       /**< 0: no line yet, 1: in the request line, 2: behind it */
    weftio_u8 padding;
};

/** What http_scan() has found. */
enum http_scanned {
    HTTP_SCAN_MORE = 0, /**< no end yet: more bytes are needed */
    HTTP_SCAN_HEAD,     /**< a head of http_scan.bytes bytes */
    HTTP_SCAN_BAD,      /**< a control character, or CR without LF */
    HTTP_SCAN_LONG      /**< longer than the limits allow */
};

/** A request, as http_parse() has read it. Ranges are offsets from the begin of the head. */
struct http_request {
    weftio_u32 answer;            /**< enum http_fixed */
    weftio_u32 head_only;         /**< HEAD: the answer has no body */
    weftio_u32 close;             /**< the connection ends behind the answer */
    weftio_u32 body_bytes;        /**< bytes that follow the head and are to be skipped */
    struct http_range path;       /**< without query; not decoded */
    struct http_range none_match; /**< value of If-None-Match; empty: there is none */
};

/** What the fields of one head have said. */
struct http_fields {
    weftio_u32 hosts;
    weftio_u32 lengths;
    weftio_u32 length;
    weftio_u32 length_too_large;
    weftio_u32 transfer_encoding;
    weftio_u32 expect;
    weftio_u32 close;
    weftio_u32 keep_alive;
};

/** One byte further. @return enum http_scanned */
WEFTIO_FN weftio_u32 http_scan_byte(weftio_u32 c, const WEFTIO_GLOBAL struct http_limits* limits,
                                    struct http_scan* scan)
{
    ++scan->bytes;
    if (c == '\n') {
        if (!scan->in_line && scan->lines == 2)
            return HTTP_SCAN_HEAD;
        scan->lines = scan->in_line ? 2 : scan->lines;
        scan->in_line = scan->after_cr = 0;
        return HTTP_SCAN_MORE;
    }
    if (scan->after_cr || (c != '\r' && http_is_control(c)))
        return HTTP_SCAN_BAD;
    if (c == '\r') {
        scan->after_cr = 1;
        return HTTP_SCAN_MORE;
    }
    if (scan->lines == 0) {
        scan->lines = 1;
        scan->line_begin = (weftio_u16)(scan->bytes - 1);
    }
    scan->in_line = 1;
    if (scan->lines == 1 && (weftio_u32)(scan->bytes - scan->line_begin) > limits->target_bytes + HTTP_LINE_REST)
        return HTTP_SCAN_LONG;
    return HTTP_SCAN_MORE;
}

/**
 * Looks at bytes [scan->bytes, count) of a request until its head ends.
 *
 * @param bytes  the request from its first byte on
 * @return enum http_scanned. Other than HTTP_SCAN_MORE: scan->bytes are those that http_parse() is to read
 */
WEFTIO_FN weftio_u32 http_scan_head(const WEFTIO_GLOBAL weftio_u8* bytes, weftio_u32 count,
                                    const WEFTIO_GLOBAL struct http_limits* limits, struct http_scan* scan)
{
    weftio_u32 found = HTTP_SCAN_MORE;

    while (found == HTTP_SCAN_MORE && scan->bytes < count) {
        found = http_scan_byte(bytes[scan->bytes], limits, scan);
        if (found == HTTP_SCAN_MORE && scan->bytes >= limits->head_bytes)
            found = HTTP_SCAN_LONG;
    }
    return found;
}

/** Takes the next line, without its end, off [*at, end). @return 0 when there is none */
WEFTIO_FN weftio_u32 http_next_line(const WEFTIO_GLOBAL weftio_u8* bytes, weftio_u32* at, weftio_u32 end,
                                    struct http_range* line)
{
    if (*at >= end)
        return 0;
    line->begin = line->end = *at;
    while (line->end < end && bytes[line->end] != '\n')
        ++line->end;
    *at = line->end + 1;
    if (line->end > line->begin && bytes[line->end - 1] == '\r')
        --line->end;
    return 1;
}

/** Takes what stands in front of the next blank off `rest`, and the blank too. */
WEFTIO_FN struct http_range http_next_part(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range* rest)
{
    struct http_range part = *rest;

    part.end = part.begin;
    while (part.end < rest->end && bytes[part.end] != ' ')
        ++part.end;
    rest->begin = part.end < rest->end ? part.end + 1 : part.end;
    return part;
}

/** Methods of RFC 9110 and PATCH are known. @return enum http_fixed */
WEFTIO_FN weftio_u32 http_parse_method(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range at,
                                       struct http_request* request)
{
    struct http_token method;

    for (weftio_u32 i = at.begin; i < at.end; ++i)
        if (!http_is_token(bytes[i]))
            return HTTP_BAD_REQUEST;
    if (at.begin == at.end)
        return HTTP_BAD_REQUEST;
    method = http_read_token(bytes, at, 0);
    request->head_only = http_is_word(&method, 4, HTTP_WORD(0, 0, 0, 0, 'H', 'E', 'A', 'D'));
    if (request->head_only || http_is_word(&method, 3, HTTP_WORD(0, 0, 0, 0, 0, 'G', 'E', 'T')))
        return HTTP_FOUND;
    if (http_is_word(&method, 4, HTTP_WORD(0, 0, 0, 0, 'P', 'O', 'S', 'T')) ||
        http_is_word(&method, 3, HTTP_WORD(0, 0, 0, 0, 0, 'P', 'U', 'T')) ||
        http_is_word(&method, 6, HTTP_WORD(0, 0, 'D', 'E', 'L', 'E', 'T', 'E')) ||
        http_is_word(&method, 7, HTTP_WORD(0, 'O', 'P', 'T', 'I', 'O', 'N', 'S')) ||
        http_is_word(&method, 5, HTTP_WORD(0, 0, 0, 'T', 'R', 'A', 'C', 'E')) ||
        http_is_word(&method, 5, HTTP_WORD(0, 0, 0, 'P', 'A', 'T', 'C', 'H')))
        return HTTP_METHOD_NOT_ALLOWED;
    if (http_is_word(&method, 7, HTTP_WORD(0, 'C', 'O', 'N', 'N', 'E', 'C', 'T'))) {
        request->close = 1; /* what follows is for the other end of a tunnel */
        return HTTP_METHOD_NOT_ALLOWED;
    }
    return HTTP_NOT_IMPLEMENTED;
}

/** "HTTP/1.x". @param[out] minor  0 or more @return enum http_fixed: HTTP_FOUND if it is served */
WEFTIO_FN weftio_u32 http_parse_version(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range at, weftio_u32* minor)
{
    struct http_token version = http_read_token(bytes, at, 0);
    weftio_u64 major_digit = version.words[2] >> 16 & 0xff, minor_digit = version.words[2] & 0xff;

    if (version.bytes != 8 || !http_is_digit((weftio_u32)major_digit) || !http_is_digit((weftio_u32)minor_digit) ||
        (version.words[2] & ~(weftio_u64)0xff00ff) != HTTP_WORD('H', 'T', 'T', 'P', '/', 0, '.', 0))
        return HTTP_BAD_REQUEST;
    *minor = (weftio_u32)minor_digit - '0';
    return major_digit == '1' ? HTTP_FOUND : HTTP_VERSION_UNKNOWN;
}

/** Offset behind "http://" or "https://" and the authority, in front of a path; 0: `target` is of no such form. */
WEFTIO_FN weftio_u32 http_behind_authority(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range target)
{
    struct http_range scheme = {0, 0};
    struct http_token token;
    weftio_u32 at;

    scheme.begin = scheme.end = target.begin;
    while (scheme.end < target.end && bytes[scheme.end] != '/')
        ++scheme.end;
    token = http_read_token(bytes, scheme, 1);
    if (!http_is_word(&token, 5, HTTP_WORD(0, 0, 0, 'h', 't', 't', 'p', ':')) &&
        !http_is_word(&token, 6, HTTP_WORD(0, 0, 'h', 't', 't', 'p', 's', ':')))
        return 0;
    at = scheme.end + 2;
    if (at >= target.end || bytes[at - 1] != '/' || !http_is_host(bytes[at]))
        return 0;
    while (at < target.end && http_is_host(bytes[at])) /* no user: RFC 9110 4.2.4 */
        ++at;
    return at == target.end || bytes[at] == '/' || bytes[at] == '?' ? at : 0;
}

/**
 * The path of a target in origin or absolute form (RFC 9112 3.2). An absolute one without a path has an empty range,
 * which means "/".
 *
 * @return HTTP_FOUND or HTTP_BAD_REQUEST
 */
WEFTIO_FN weftio_u32 http_parse_target(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range target,
                                       struct http_request* request)
{
    weftio_u32 path = target.begin;

    for (weftio_u32 i = target.begin; i < target.end; ++i)
        if (bytes[i] <= ' ' || bytes[i] == '#')
            return HTTP_BAD_REQUEST;
    if (target.begin == target.end)
        return HTTP_BAD_REQUEST;
    if (bytes[path] != '/')
        path = http_behind_authority(bytes, target);
    if (path == 0 && bytes[target.begin] != '/')
        return HTTP_BAD_REQUEST;
    request->path.begin = request->path.end = path;
    while (request->path.end < target.end && bytes[request->path.end] != '?')
        ++request->path.end;
    return HTTP_FOUND;
}

/**
 * "METHOD target HTTP/1.x". A syntax error is the answer even if the method is unknown, too.
 *
 * @param cut  the line is longer than the limits, and has no end
 * @return enum http_fixed
 */
WEFTIO_FN weftio_u32 http_parse_line(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range line, weftio_u32 cut,
                                     const WEFTIO_GLOBAL struct http_limits* limits, struct http_request* request,
                                     weftio_u32* minor)
{
    struct http_range rest = line, method = http_next_part(bytes, &rest), target = http_next_part(bytes, &rest);
    weftio_u32 answer, version;

    answer = http_parse_method(bytes, method, request);
    if (answer == HTTP_BAD_REQUEST || (cut && answer == HTTP_NOT_IMPLEMENTED))
        return answer;
    if (target.end - target.begin > limits->target_bytes)
        return HTTP_URI_TOO_LONG;
    if (cut)
        return HTTP_BAD_REQUEST;
    version = http_parse_version(bytes, rest, minor);
    if (version != HTTP_FOUND)
        return version;
    if (answer == HTTP_FOUND)
        answer = http_parse_target(bytes, target, request);
    return answer;
}

/** Content-Length. @return 0: it is no number, or another one than before */
WEFTIO_FN weftio_u32 http_parse_length(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range value,
                                       weftio_u32 body_bytes, struct http_fields* fields)
{
    weftio_u32 length = 0, too_large = 0;

    if (value.begin == value.end)
        return 0;
    for (weftio_u32 i = value.begin; i < value.end; ++i) {
        if (!http_is_digit(bytes[i]))
            return 0;
        too_large |= length > 400000000u;
        length = too_large ? 0 : length * 10 + (bytes[i] - '0');
    }
    too_large |= length > body_bytes;
    if (fields->lengths++ && (fields->length != length || fields->length_too_large != too_large))
        return 0;
    fields->length = length;
    fields->length_too_large = too_large;
    return 1;
}

/** Connection: tokens other than "close" and "keep-alive" say nothing to this server. */
WEFTIO_FN void http_parse_connection(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range value,
                                     struct http_fields* fields)
{
    struct http_range element;

    while (http_next_element(bytes, &value, &element)) {
        struct http_token token = http_read_token(bytes, element, 1);
        fields->close |= http_is_word(&token, 5, HTTP_WORD(0, 0, 0, 'c', 'l', 'o', 's', 'e'));
        fields->keep_alive |= token.bytes == 10 && token.words[1] == HTTP_WORD(0, 0, 0, 0, 0, 0, 'k', 'e') &&
                              token.words[2] == HTTP_WORD('e', 'p', '-', 'a', 'l', 'i', 'v', 'e');
    }
}

/** One Host field with a host in it, or an empty one (RFC 9112 3.2). */
WEFTIO_FN weftio_u32 http_parse_host(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range value,
                                     struct http_fields* fields)
{
    for (weftio_u32 i = value.begin; i < value.end; ++i)
        if (!http_is_host(bytes[i]))
            return 0;
    return fields->hosts++ == 0;
}

/** The fields that matter; others are ignored. @return 0: the value is not one that the field may have */
WEFTIO_FN weftio_u32 http_parse_value(const WEFTIO_GLOBAL weftio_u8* bytes, const struct http_token* name,
                                      struct http_range value, weftio_u32 body_bytes, struct http_fields* fields,
                                      struct http_request* request)
{
    if (http_is_word(name, 4, HTTP_WORD(0, 0, 0, 0, 'h', 'o', 's', 't')))
        return http_parse_host(bytes, value, fields);
    if (name->bytes == 14 && name->words[1] == HTTP_WORD(0, 0, 'c', 'o', 'n', 't', 'e', 'n') &&
        name->words[2] == HTTP_WORD('t', '-', 'l', 'e', 'n', 'g', 't', 'h'))
        return http_parse_length(bytes, value, body_bytes, fields);
    if (name->bytes == 10 && name->words[1] == HTTP_WORD(0, 0, 0, 0, 0, 0, 'c', 'o') &&
        name->words[2] == HTTP_WORD('n', 'n', 'e', 'c', 't', 'i', 'o', 'n'))
        http_parse_connection(bytes, value, fields);
    else if (name->bytes == 17 && name->words[1] == HTTP_WORD('r', 'a', 'n', 's', 'f', 'e', 'r', '-') &&
             name->words[2] == HTTP_WORD('e', 'n', 'c', 'o', 'd', 'i', 'n', 'g') && name->words[0] == 't')
        fields->transfer_encoding = 1;
    else if (name->bytes == 13 && name->words[1] == HTTP_WORD(0, 0, 0, 'i', 'f', '-', 'n', 'o') &&
             name->words[2] == HTTP_WORD('n', 'e', '-', 'm', 'a', 't', 'c', 'h'))
        request->none_match = value;
    else if (http_is_word(name, 6, HTTP_WORD(0, 0, 'e', 'x', 'p', 'e', 'c', 't')))
        fields->expect = 1;
    return 1;
}

/** "name: value". A blank in front of the name continues the line before (obs-fold), which is refused. */
WEFTIO_FN weftio_u32 http_parse_field(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range line,
                                      weftio_u32 body_bytes, struct http_fields* fields, struct http_request* request)
{
    struct http_range name = line, value = line;
    struct http_token token;

    name.end = name.begin;
    while (name.end < line.end && http_is_token(bytes[name.end]))
        ++name.end;
    if (name.begin == name.end || name.end == line.end || bytes[name.end] != ':')
        return 0;
    value.begin = name.end + 1;
    token = http_read_token(bytes, name, 1);
    return http_parse_value(bytes, &token, http_trimmed(bytes, value), body_bytes, fields, request);
}

/** What the fields mean together, for framing (RFC 9112 6) and for the connection (9.3). @return enum http_fixed */
WEFTIO_FN weftio_u32 http_conclude(const struct http_fields* fields, weftio_u32 minor, struct http_request* request)
{
    if (minor >= 1 && fields->hosts == 0)
        return HTTP_BAD_REQUEST;
    if (fields->transfer_encoding)
        return HTTP_NOT_IMPLEMENTED;
    if (fields->length_too_large)
        return HTTP_CONTENT_TOO_LARGE;
    request->body_bytes = fields->length;
    /* A client that waits for 100 (Continue) may leave the body out after another answer. */
    request->close |= fields->close || (minor == 0 && !fields->keep_alive) || (fields->expect && fields->length);
    return HTTP_FOUND;
}

/**
 * Reads a head that http_scan_head() has found, or refused.
 *
 * @param bytes    the request from its first byte on
 * @param scan     where the head ends, and where its request line begins
 * @param scanned  what http_scan_head() has returned; not HTTP_SCAN_MORE
 */
WEFTIO_FN void http_parse(const WEFTIO_GLOBAL weftio_u8* bytes, const struct http_scan* scan, weftio_u32 scanned,
                          const WEFTIO_GLOBAL struct http_limits* limits, struct http_request* request)
{
    struct http_fields fields = {0, 0, 0, 0, 0, 0, 0, 0};
    struct http_request none = {HTTP_FOUND, 0, 0, 0, {0, 0}, {0, 0}};
    struct http_range line = {0, 0};
    weftio_u32 at = scan->line_begin, minor = 1, cut = scanned == HTTP_SCAN_LONG && scan->lines < 2, framing;

    *request = none;
    http_next_line(bytes, &at, scan->bytes, &line);
    framing = scanned == HTTP_SCAN_BAD ? HTTP_BAD_REQUEST : HTTP_FOUND;
    if (framing == HTTP_FOUND)
        request->answer = http_parse_line(bytes, line, cut, limits, request, &minor);
    if (scanned == HTTP_SCAN_LONG && !cut)
        framing = HTTP_HEAD_TOO_LARGE;
    if (request->answer == HTTP_BAD_REQUEST || request->answer == HTTP_URI_TOO_LONG ||
        request->answer == HTTP_VERSION_UNKNOWN || cut)
        framing = request->answer;
    while (framing == HTTP_FOUND && http_next_line(bytes, &at, scan->bytes, &line) && line.begin < line.end)
        if (!http_parse_field(bytes, line, limits->body_bytes, &fields, request))
            framing = HTTP_BAD_REQUEST;
    if (framing == HTTP_FOUND)
        framing = http_conclude(&fields, minor, request);
    if (framing == HTTP_FOUND)
        return;
    request->answer = framing; /* where the next request begins is unknown */
    request->close = 1;
}
