// What requests are answered with, however they are cut into segments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "http_world.hpp"

namespace weftio::packets {

namespace {

struct exchange {
    std::string name;
    std::string request;
    std::vector<int> statuses;
    bool closes = false;
};

std::ostream& operator<<(std::ostream& to, const exchange& of)
{
    return to << of.name;
}

std::string with(std::string_view line, std::string_view fields)
{
    return std::string(line) + "\r\n" + std::string(fields) + "\r\n";
}
std::string get(std::string_view fields)
{
    return with("GET / HTTP/1.1", fields);
}
const std::string host = "Host: a\r\n";

std::vector<exchange> lines()
{
    return {
        {"Get", get(host), {200}},
        {"Head", with("HEAD / HTTP/1.1", host), {200}},
        {"Contact", with("GET /contact HTTP/1.1", host), {200}},
        {"Query", with("GET /contact?a=b?c&%zz HTTP/1.1", host), {200}},
        {"EmptyQuery", with("GET /? HTTP/1.1", host), {200}},
        {"Post", with("POST / HTTP/1.1", host), {405}},
        {"Put", with("PUT /none HTTP/1.1", host), {405}},
        {"Delete", with("DELETE / HTTP/1.1", host), {405}},
        {"Patch", with("PATCH / HTTP/1.1", host), {405}},
        {"Trace", with("TRACE / HTTP/1.1", host), {405}},
        {"Options", with("OPTIONS * HTTP/1.1", host), {405}},
        {"Connect", with("CONNECT a:80 HTTP/1.1", host), {405}, true},
        {"UnknownMethod", with("BREW / HTTP/1.1", host), {501}},
        {"LowerCaseMethod", with("get / HTTP/1.1", host), {501}},
        {"MethodOf32", with(std::string(32, 'A') + " / HTTP/1.1", host), {501}},
        {"MethodOf33", with(std::string(33, 'A') + " / HTTP/1.1", host), {501}},
        {"MethodOf200", with(std::string(200, 'A') + " / HTTP/1.1", host), {501}},
        {"WrongMethod", with("G(T / HTTP/1.1", host), {400}, true},
        {"TabInLine", with("GET\t/ HTTP/1.1", host), {400}, true},
        {"NoMethod", with(" / HTTP/1.1", host), {400}, true},
        {"NoTarget", with("GET  HTTP/1.1", host), {400}, true},
        {"NoVersion", with("GET /", host), {400}, true},
        {"NothingButMethod", with("GET", host), {400}, true},
        {"TwoBlanks", with("GET  / HTTP/1.1", host), {400}, true},
        {"BlankBehindVersion", with("GET / HTTP/1.1 ", host), {400}, true},
        {"TargetWithBlank", with("GET /a b HTTP/1.1", host), {400}, true},
        {"Fragment", with("GET /#a HTTP/1.1", host), {400}, true},
        {"NoSlash", with("GET contact HTTP/1.1", host), {400}, true},
        {"Asterisk", with("GET * HTTP/1.1", host), {400}, true},
        {"Version10", with("GET / HTTP/1.0", ""), {200}, true},
        {"Version12", with("GET / HTTP/1.2", host), {200}},
        {"Version20", with("PRI * HTTP/2.0", ""), {505}, true},
        {"Version09", with("GET / HTTP/0.9", ""), {505}, true},
        {"LowerCaseVersion", with("GET / http/1.1", host), {400}, true},
        {"LongVersion", with("GET / HTTP/1.10", host), {400}, true},
        {"WrongVersion", with("GET / HTTP/1.x", host), {400}, true},
        {"OtherProtocol", with("GET / HTTQ/1.1", host), {400}, true},
        {"EmptyLinesInFront", "\r\n\n\r\n" + get(host), {200}},
        {"BareLineFeeds", "GET / HTTP/1.1\nHost: a\n\n", {200}},
        {"CarriageReturnInLine", "GET / HTTP/1.1\rHost: a\r\n\r\n", {400}, true},
        {"CarriageReturnTwice", "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", {400}, true},
        {"NulInLine", with(std::string("GET /\0 HTTP/1.1", 15), host), {400}, true},
        {"Del", with("GET /\x7f HTTP/1.1", host), {400}, true},
        {"Utf8", with("GET /\xc3\xa4 HTTP/1.1", host), {404}},
        {"TlsHello", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), {400}, true},
    };
}

std::vector<exchange> targets()
{
    const auto target = [](std::string name, const std::string& of, int status, bool closes = false) {
        return exchange{std::move(name), with("GET " + of + " HTTP/1.1", host), {status}, closes};
    };
    return {
        target("Absolute", "http://a/contact", 200),
        target("AbsoluteWithoutPath", "http://a", 200),
        target("AbsoluteWithQueryOnly", "http://a?b", 200),
        target("AbsoluteWithPort", "HTTPS://[::1]:8080/contact", 200),
        target("AbsoluteWithUser", "http://me@a/", 400, true),
        target("AbsoluteWithoutHost", "http:///", 400, true),
        target("AbsoluteWithoutAnything", "http://", 400, true),
        target("AbsoluteCutShort", "http:/", 400, true),
        target("SchemeAlone", "http:", 400, true),
        target("OtherScheme", "ftp://a/", 400, true),
        target("LongScheme", "abcdefghijklmnopqrstuvwxyzhttp://a/", 400, true),
        target("Encoded", "/%63ont%61ct", 200),
        target("EncodedInUpperCase", "/%2Fcontact", 404),
        target("Dots", "/./contact", 200),
        target("DotsInTheMiddle", "/a/b/.././../contact", 200),
        target("DotAtTheEnd", "/contact/.", 404),
        target("DotsAtTheEnd", "/contact/..", 200),
        target("SlashAtTheEnd", "/contact/", 404),
        target("TwoSlashes", "//contact", 404),
        target("HiddenName", "/.contact", 404),
        target("ThreeDots", "/.../contact", 404),
        target("BareTraversal", "/../etc/passwd", 400),
        target("TraversalThroughAName", "/a/../../etc/passwd", 400),
        target("TraversalAtTheEnd", "/..", 400),
        target("EncodedTraversal", "/%2e%2e%2fetc/passwd", 404),
        target("EncodedDots", "/%2e%2E/etc/passwd", 400),
        target("EncodedSlash", "/..%2fetc/passwd", 404),
        target("EncodedTwice", "/%252e%252e%252fetc/passwd", 404),
        target("Backslashes", "/..\\..\\etc\\passwd", 404),
        target("EncodedBackslashes", "/..%5c..%5cetc", 404),
        target("EncodedNul", "/contact%00.html", 400),
        target("EncodedLineFeed", "/contact%0aa", 400),
        target("EncodedDel", "/%7f", 400),
        target("EncodedTab", "/%09", 404),
        target("OverlongUtf8", "/%c0%ae%c0%ae/etc/passwd", 404),
        target("CutEscape", "/%4", 400),
        target("EscapeAtTheEnd", "/%", 400),
        target("WrongEscape", "/%4g", 400),
        target("WrongEscapeToo", "/%g4", 400),
        target("EscapeInUnicode", "/%u002e", 400),
        target("LongestTarget", "/" + std::string(2047, 'a'), 404),
        target("TooLongTarget", "/" + std::string(2048, 'a'), 414, true),
        {"LongestLine", with(std::string(32, 'A') + " /" + std::string(2047, 'a') + " HTTP/1.1", host), {501}},
        target("LongestEncodedTarget", "/" + std::string(2044, 'a') + "%61", 404),
    };
}

std::vector<exchange> fields()
{
    const std::string one(64, 'x'), ten = "GET / HTTP/1.0\r\n";
    std::string many = get(host + "a: b\r\n");
    many.insert(many.size() - 2, "X: " + std::string(4096 - many.size() - 5, 'y') + "\r\n");
    return {
        {"NoHost", get(""), {400}, true},
        {"NoHostButFields", get("A: b\r\n"), {400}, true},
        {"TwoHosts", get(host + host), {400}, true},
        {"EmptyHost", get("Host:\r\n"), {200}},
        {"HostWithPort", get("hOST: \t[2001:db8::1]:8080\t \r\n"), {200}},
        {"HostWithBlank", get("Host: a b\r\n"), {400}, true},
        {"HostWithSlash", get("Host: a/b\r\n"), {400}, true},
        {"HostWithUser", get("Host: me@a\r\n"), {400}, true},
        {"BlankBeforeColon", get(host + "A : b\r\n"), {400}, true},
        {"FieldWithoutColon", get(host + "A\r\n"), {400}, true},
        {"FieldWithoutName", get(host + ": b\r\n"), {400}, true},
        {"FieldWithWrongName", get(host + "A\xff: b\r\n"), {400}, true},
        {"FoldedField", get(host + "A: b\r\n c\r\n"), {400}, true},
        {"FoldedFirstField", get(" A: b\r\n" + host), {400}, true},
        {"FoldedByTab", get(host + "A: b\r\n\tc\r\n"), {400}, true},
        {"TabInValue", get(host + "A: b\tc\r\n"), {200}},
        {"ObsText", get(host + "A: \xff\xfe\r\n"), {200}},
        {"ControlInValue", get(host + "A: b\x01\r\n"), {400}, true},
        {"NulInValue", get(host + std::string("A: b\0c\r\n", 8)), {400}, true},
        {"CarriageReturnInValue", get(host + "A: b\rc\r\n"), {400}, true},
        {"Close", get(host + "Connection: close\r\n"), {200}, true},
        {"CloseInCapitals", get(host + "CONNECTION: CLOSE\r\n"), {200}, true},
        {"CloseInAList", get(host + "Connection: upgrade ,,\tclose, x\r\n"), {200}, true},
        {"CloseInASecondField", get(host + "Connection: a\r\nConnection: close\r\n"), {200}, true},
        {"CloseBeatsKeepAlive", get(host + "Connection: keep-alive, close\r\n"), {200}, true},
        {"NotQuiteClose", get(host + "Connection: closed, xclose, clos\r\n"), {200}},
        {"LongToken", get(host + "Connection: " + one + "close\r\n"), {200}},
        {"Version10KeepsAlive", ten + "Connection: Keep-Alive\r\n\r\n", {200}},
        {"Version10OtherToken", ten + "Connection: keep-alives\r\n\r\n", {200}, true},
        {"Version10AlmostKeepAlive", ten + "Connection: beep-alive\r\n\r\n", {200}, true},
        {"Version10CloseBeats", ten + "Connection: close, keep-alive\r\n\r\n", {200}, true},
        {"Body", get(host + "Content-Length: 5\r\n") + "hello" + get(host), {200, 200}},
        {"BodyThatLooksLikeARequest", get(host + "Content-Length: 27\r\n") + get(host) + get(host), {200, 200}},
        {"BodyOfAPost", with("POST / HTTP/1.1", host + "Content-Length: 3\r\n") + "a=b" + get(host), {405, 200}},
        {"BodyOfNothing", get(host + "Content-Length: 0\r\n") + get(host), {200, 200}},
        {"LongestBody", get(host + "Content-Length: 1000\r\n") + std::string(1000, '\0') + get(host), {200, 200}},
        {"TooLongBody", get(host + "Content-Length: 1001\r\n"), {413}, true},
        {"LengthBeyond32Bits", get(host + "Content-Length: 4294967297\r\n"), {413}, true},
        {"LengthBeyond64Bits", get(host + "Content-Length: 18446744073709551617\r\n"), {413}, true},
        {"LengthWithZeros", get(host + "Content-Length: 0000000000000000000000002\r\n") + "ab" + get(host), {200, 200}},
        {"EmptyLength", get(host + "Content-Length: \r\n"), {400}, true},
        {"NegativeLength", get(host + "Content-Length: -1\r\n"), {400}, true},
        {"LengthWithSign", get(host + "Content-Length: +1\r\n"), {400}, true},
        {"LengthInHex", get(host + "Content-Length: 0x1\r\n"), {400}, true},
        {"LengthsAsList", get(host + "Content-Length: 1, 1\r\n"), {400}, true},
        {"SameLengthTwice", get(host + "Content-Length: 1\r\nContent-Length: 01\r\n") + "a" + get(host), {200, 200}},
        {"TwoLengths", get(host + "Content-Length: 1\r\nContent-Length: 2\r\n"), {400}, true},
        {"LongAndShortLength", get(host + "Content-Length: 1001\r\nContent-Length: 0\r\n"), {400}, true},
        {"Chunked", get(host + "Transfer-Encoding: chunked\r\n") + "0\r\n\r\n", {501}, true},
        {"ChunkedWithLength", get(host + "Content-Length: 5\r\ntransfer-ENCODING: x\r\n") + "0\r\n\r\n", {501}, true},
        {"ExpectWithBody", get(host + "Expect: 100-continue\r\nContent-Length: 5\r\n"), {200}, true},
        {"ExpectWithoutBody", get(host + "Expect: 100-continue\r\n") + get(host), {200, 200}},
        {"Pipelined", get(host) + with("HEAD /none HTTP/1.1", host) + get(host), {200, 404, 200}},
        {"ErrorEndsThePipeline", get(host) + get("") + get(host), {200, 400}, true},
        {"LongestHead", many, {200}},
        {"TooLongHead", many.substr(0, many.size() - 4) + "y\r\n\r\n", {431}, true},
        {"TooLongHeadAfterAWrongLine", "G(T / HTTP/1.1\r\nA: " + std::string(5000, 'x'), {400}, true},
        {"EmptyLinesAndNoMore", std::string(5000, '\n'), {400}, true},
        {"LineOf64KiB", "GET /" + std::string(65536, 'a') + " HTTP/1.1\r\n" + host + "\r\n", {414}, true},
        {"UnknownMethodAndLineOf64KiB", "BREW /" + std::string(65536, 'a'), {501}, true},
        {"MethodOf64KiB", std::string(65536, 'A') + " / HTTP/1.1\r\n" + host + "\r\n", {501}, true},
        {"VersionOf64KiB", "GET / " + std::string(65536, 'A') + "\r\n" + host + "\r\n", {400}, true},
        {"BlanksOf64KiB", std::string(65536, ' '), {400}, true},
        {"FieldOf64KiB", get(host + "A: " + std::string(65536, 'a') + "\r\n"), {431}, true},
    };
}

/// Everything that a peer gets which sends `text` in segments of these lengths.
struct outcome {
    std::string text;
    bool closed;
    bool operator==(const outcome&) const = default;
};

outcome in_segments(const std::string& text, std::size_t first, std::size_t others)
{
    static http_world world;
    http_peer peer(world);
    outcome seen{};
    for (std::size_t at = 0, count = first; at < text.size(); at += count, count = others) {
        const std::string segment = text.substr(at, count);
        EXPECT_EQ(peer.send(segment), segment.size());
        seen.text += peer.receive();
    }
    EXPECT_LE(peer.closed, 1u);
    seen.closed = peer.closed != 0;
    return seen;
}

class HttpRequest : public testing::TestWithParam<exchange> {};

TEST_P(HttpRequest, HasItsAnswer)
{
    const exchange& of = GetParam();
    outcome seen = in_segments(of.request, of.request.size(), 1);
    const bool is_head = of.request.starts_with("HEAD");
    std::vector<int> statuses;
    while (!seen.text.empty()) {
        const http_reply reply = take_reply(seen.text, is_head || (of.name == "Pipelined" && statuses.size() == 1));
        if (reply.status == 0)
            break;
        statuses.push_back(reply.status);
        const bool last = statuses.size() == of.statuses.size();
        EXPECT_NE(reply.head.find(last && of.closes ? "\r\nConnection: close\r\n" : "\r\nConnection: keep-alive\r\n"),
                  reply.head.npos);
        EXPECT_EQ(reply.head.find("\r\nAllow: GET, HEAD\r\n") != reply.head.npos, reply.status == 405);
    }
    EXPECT_EQ(seen.text, "");
    EXPECT_EQ(statuses, of.statuses);
    EXPECT_EQ(seen.closed, of.closes);
}

TEST_P(HttpRequest, HasTheSameAnswerInPieces)
{
    const exchange& of = GetParam();
    const outcome whole = in_segments(of.request, of.request.size(), 1);
    EXPECT_EQ(in_segments(of.request, 1, 1), whole) << "byte by byte";
    EXPECT_EQ(in_segments(of.request, 1460, 1460), whole);
    const std::size_t step = of.request.size() > 1000 ? 97 : 1;
    for (std::size_t cut = 1; cut < std::min<std::size_t>(of.request.size(), 6000); cut += step)
        EXPECT_EQ(in_segments(of.request, cut, of.request.size()), whole) << "cut at " << cut;
}

std::string name_of(const testing::TestParamInfo<exchange>& info)
{
    return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Lines, HttpRequest, testing::ValuesIn(lines()), name_of);
INSTANTIATE_TEST_SUITE_P(Targets, HttpRequest, testing::ValuesIn(targets()), name_of);
INSTANTIATE_TEST_SUITE_P(Fields, HttpRequest, testing::ValuesIn(fields()), name_of);

} // namespace

} // namespace weftio::packets
