// Paths as they are decoded, and tokens of fields as they are taken apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http_world.hpp"

namespace weftio::packets {

namespace {

using testing::ElementsAre;

/// The decoded path, or the answer's number.
std::string decoded(const std::string& raw, std::size_t room = 64)
{
    const http_exact bytes(raw);
    std::vector<weftio_u8> scratch(room);
    http_path path{scratch.data(), static_cast<weftio_u32>(room), 0, 0};
    const weftio_u32 answer = http_decode_path(bytes.data(), {0, static_cast<weftio_u32>(raw.size())}, &path);
    return answer == HTTP_FOUND         ? std::string(scratch.begin(), scratch.begin() + path.end)
           : answer == HTTP_BAD_REQUEST ? "400"
                                        : "404";
}

TEST(HttpPath, LosesDotSegments)
{
    EXPECT_EQ(decoded("/"), "/");
    EXPECT_EQ(decoded("/a/b"), "/a/b");
    EXPECT_EQ(decoded("/."), "/");
    EXPECT_EQ(decoded("/./"), "/");
    EXPECT_EQ(decoded("/./a/./b/."), "/a/b/");
    EXPECT_EQ(decoded("/a/.."), "/");
    EXPECT_EQ(decoded("/a/../b"), "/b");
    EXPECT_EQ(decoded("/a/b/../../c"), "/c");
    EXPECT_EQ(decoded("/a/b/.."), "/a/");
    EXPECT_EQ(decoded("/a//../b"), "/a/b");
    EXPECT_EQ(decoded("/.a/..b/c./d../..."), "/.a/..b/c./d../...");
    EXPECT_EQ(decoded("/a/%2E/%2e%2e/b"), "/b");
}

TEST(HttpPath, NeverLeadsOutOfTheSite)
{
    for (const char* raw : {"/..", "/../", "/../a", "/a/../..", "/a/../../b", "/./..", "/%2e%2e", "/.%2e/a", "/%2E./a"})
        EXPECT_EQ(decoded(raw), "400") << raw;
    EXPECT_EQ(decoded("/%2e%2e%2fa"), "404");
    EXPECT_EQ(decoded("/%252e%252e/a"), "/%2e%2e/a") << "decoded once";
    EXPECT_EQ(decoded("/..\\a"), "/..\\a") << "a backslash is a letter";
}

TEST(HttpPath, IsDecoded)
{
    EXPECT_EQ(decoded("/%41%7a%7E%20%25%C3%a4"), "/Az~ %\xc3\xa4");
    for (const char* raw : {"/%", "/%4", "/%4g", "/%g4", "/%00", "/%1f", "/%7F", "/%0d", "/% 4"})
        EXPECT_EQ(decoded(raw), "400") << raw;
}

TEST(HttpPath, IsNoLongerThanItsRoom)
{
    EXPECT_EQ(decoded("/", 0), "404");
    EXPECT_EQ(decoded("/", 1), "/");
    EXPECT_EQ(decoded("/abc", 4), "/abc");
    EXPECT_EQ(decoded("/abc", 3), "404");
    EXPECT_EQ(decoded("/ab/", 3), "404");
    EXPECT_EQ(decoded("/ab/../c", 6), "/c");
    EXPECT_EQ(decoded("/a/..", 4), "404") << "dots are written before they are seen to be dots";
}

std::vector<std::string> elements(const std::string& list)
{
    const http_exact bytes(list);
    http_range rest{0, static_cast<weftio_u32>(list.size())}, element{0, 0};
    std::vector<std::string> found;
    while (http_next_element(bytes.data(), &rest, &element))
        found.push_back(list.substr(element.begin, element.end - element.begin));
    return found;
}

TEST(HttpText, TakesListsApart)
{
    EXPECT_THAT(elements(""), ElementsAre());
    EXPECT_THAT(elements(" \t"), ElementsAre(""));
    EXPECT_THAT(elements("a"), ElementsAre("a"));
    EXPECT_THAT(elements("a ,\tb c,, d,"), ElementsAre("a", "b c", "", "d"));
}

TEST(HttpText, KnowsTheCharactersOfTokensAndHosts)
{
    const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const std::string token = letters + "!#$%&'*+-.^_`|~", host = letters + "!$%&'()*+,-.:;=[]_~";
    for (unsigned c = 0; c < 256; ++c) {
        EXPECT_EQ(http_is_token(c) != 0, c != 0 && token.find(static_cast<char>(c)) != token.npos) << c;
        EXPECT_EQ(http_is_host(c) != 0, c != 0 && host.find(static_cast<char>(c)) != host.npos) << c;
        EXPECT_EQ(http_is_control(c) != 0, (c < 32 && c != 9) || c == 127) << c;
        const bool digit = c < 128 && std::isxdigit(static_cast<int>(c));
        EXPECT_EQ(http_hex(c), digit ? std::stoul(std::string(1, static_cast<char>(c)), nullptr, 16) : 16) << c;
    }
}

TEST(HttpText, WritesDecimals)
{
    for (const weftio_u64 value : {0ull, 9ull, 10ull, 99ull, 100ull, 4294967296ull, ~0ull}) {
        std::vector<weftio_u8> to(std::to_string(value).size());
        EXPECT_EQ(http_write_decimal(to.data(), value), to.size());
        EXPECT_EQ(std::string(to.begin(), to.end()), std::to_string(value));
    }
}

} // namespace

} // namespace weftio::packets
