/* Characters, numbers and bytes of HTTP messages. Part of the kernels of weftio-packets. */
#pragma once

#include "weftio/device/platform.h"

/*
 * Words of a message are compared as numbers, eight characters each: strings of OpenCL C have an address space of their
 * own. "get" is HTTP_WORD(0, 0, 0, 0, 0, 'g', 'e', 't').
 */
#define HTTP_WORD(a, b, c, d, e, f, g, h)                                                                              \
    ((weftio_u64)(a) << 56 | (weftio_u64)(b) << 48 | (weftio_u64)(c) << 40 | (weftio_u64)(d) << 32 |                   \
     (weftio_u64)(e) << 24 | (weftio_u64)(f) << 16 | (weftio_u64)(g) << 8 | (weftio_u64)(h))

/** A run of bytes of a message, by offsets. */
struct http_range {
    weftio_u32 begin;
    weftio_u32 end;
};

/** The last 24 characters of a token as numbers, and how many it has. Two tokens of up to 24 are equal if these are. */
struct http_token {
    weftio_u64 words[3]; /**< words[2] has the last eight characters */
    weftio_u32 bytes;
};

WEFTIO_FN weftio_u32 http_is_digit(weftio_u32 c)
{
    return c - '0' < 10;
}
WEFTIO_FN weftio_u32 http_lower(weftio_u32 c)
{
    return c - 'A' < 26 ? c + 32 : c;
}
WEFTIO_FN weftio_u32 http_is_space(weftio_u32 c)
{
    return c == ' ' || c == '\t';
}
/** C0 controls but HTAB, and DEL: in no message head. NUL is one. */
WEFTIO_FN weftio_u32 http_is_control(weftio_u32 c)
{
    return (c < 32 && c != '\t') || c == 127;
}

/** `c` is one of the 32 characters from `base` on that have a bit in `set`. */
WEFTIO_FN weftio_u32 http_in_set(weftio_u32 c, weftio_u32 base, weftio_u32 set)
{
    return c - base < 32 && (set >> (c - base) & 1);
}

/** tchar of RFC 9110 5.6.2. */
WEFTIO_FN weftio_u32 http_is_token(weftio_u32 c)
{
    return http_lower(c) - 'a' < 26 || http_in_set(c, 32, 0x3ff6cfau) /* !#$%&'*+-. 0-9 */ ||
           http_in_set(c, 94, 0x7u) /* ^_` */ || c == '|' || c == '~';
}

/** A character of uri-host or port in a Host field (RFC 3986 3.2.2), brackets and percent included. */
WEFTIO_FN weftio_u32 http_is_host(weftio_u32 c)
{
    return http_lower(c) - 'a' < 26 || http_in_set(c, 32, 0x2fff7ff2u) /* !$%&'()*+,-. 0-9 :;= */ || c == '[' ||
           c == ']' || c == '_' || c == '~';
}

/** Value of a hexadecimal digit; 16: it is none. */
WEFTIO_FN weftio_u32 http_hex(weftio_u32 c)
{
    if (http_is_digit(c))
        return c - '0';
    return http_lower(c) - 'a' < 6 ? http_lower(c) - 'a' + 10 : 16;
}

/** The token at [begin, end), as it is or in lower case. */
WEFTIO_FN struct http_token http_read_token(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range at,
                                            weftio_u32 lower)
{
    struct http_token token = {{0, 0, 0}, 0};

    token.bytes = at.end - at.begin;
    for (weftio_u32 i = at.begin; i < at.end; ++i) {
        weftio_u32 c = bytes[i];
        token.words[0] = token.words[0] << 8 | token.words[1] >> 56;
        token.words[1] = token.words[1] << 8 | token.words[2] >> 56;
        token.words[2] = token.words[2] << 8 | (lower ? http_lower(c) : c);
    }
    return token;
}

/** A token of up to eight characters. */
WEFTIO_FN weftio_u32 http_is_word(const struct http_token* token, weftio_u32 bytes, weftio_u64 word)
{
    return token->bytes == bytes && token->words[2] == word;
}

/** `range` without blanks at its ends. */
WEFTIO_FN struct http_range http_trimmed(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range range)
{
    while (range.begin < range.end && http_is_space(bytes[range.begin]))
        ++range.begin;
    while (range.begin < range.end && http_is_space(bytes[range.end - 1]))
        --range.end;
    return range;
}

/**
 * Takes the next element, without blanks around it, off the comma-separated list `rest`. An element may be empty.
 *
 * @return 0 at the end of the list
 */
WEFTIO_FN weftio_u32 http_next_element(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range* rest,
                                       struct http_range* element)
{
    if (rest->begin >= rest->end)
        return 0;
    element->begin = element->end = rest->begin;
    while (element->end < rest->end && bytes[element->end] != ',')
        ++element->end;
    rest->begin = element->end + 1;
    *element = http_trimmed(bytes, *element);
    return 1;
}

/** FNV-1a, one byte further. Begin with HTTP_HASH_BEGIN. */
#define HTTP_HASH_BEGIN 2166136261u
WEFTIO_FN weftio_u32 http_hash(weftio_u32 hash, weftio_u32 byte)
{
    return (hash ^ byte) * 16777619u;
}

WEFTIO_FN weftio_u32 http_equal(const WEFTIO_GLOBAL weftio_u8* a, const WEFTIO_GLOBAL weftio_u8* b, weftio_u32 count)
{
    for (weftio_u32 i = 0; i < count; ++i)
        if (a[i] != b[i])
            return 0;
    return 1;
}

/** Copies forward: the ranges do not overlap, or `to` lies in front of `from`. */
WEFTIO_FN void http_copy_bytes(WEFTIO_GLOBAL weftio_u8* to, const WEFTIO_GLOBAL weftio_u8* from, weftio_u32 count)
{
    for (weftio_u32 i = 0; i < count; ++i)
        to[i] = from[i];
}

/** Writes `value` in decimal, without zeros in front. @return how many digits: 1 to 20 */
WEFTIO_FN weftio_u32 http_write_decimal(WEFTIO_GLOBAL weftio_u8* to, weftio_u64 value)
{
    weftio_u32 digits = 1;

    for (weftio_u64 rest = value / 10; rest; rest /= 10)
        ++digits;
    for (weftio_u32 i = digits; i > 0; --i, value /= 10)
        to[i - 1] = (weftio_u8)('0' + value % 10);
    return digits;
}
