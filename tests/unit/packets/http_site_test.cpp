// From a folder to the image that kernels read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include "folder.hpp"
#include "http_world.hpp"
#include "weftio/error.hpp"

namespace weftio::packets {

namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

http_reply ask(http_world& world, const std::string& path, const std::string& fields = "")
{
    http_peer peer(world);
    std::string text = peer.ask("GET " + path + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n");
    return take_reply(text);
}

std::vector<std::string> paths_of(const folder_listing& listing)
{
    std::vector<std::string> paths;
    for (const folder_file& each : listing.files)
        paths.push_back(each.path);
    return paths;
}

/// What `call` throws.
template <class Call>
std::string refusal(errc why, Call call)
{
    try {
        call();
    } catch (const error& failure) {
        EXPECT_EQ(failure.code(), why);
        return failure.what();
    }
    return "nothing was thrown";
}

TEST(HttpFolder, HasFilesBelowFolders)
{
    http_folder folder;
    folder.file("b.txt", "bb").file("a/c/d.html", "d").file("a/e f\xc3\xa4", "");
    const folder_listing listing = list_folder(folder.path(), 100);
    EXPECT_THAT(paths_of(listing), ElementsAre("/a/c/d.html", "/a/e f\xc3\xa4", "/b.txt"));
    EXPECT_THAT(listing.folders, ElementsAre("/a", "/a/c"));
    EXPECT_EQ(listing.files[2].bytes, 2u);
    EXPECT_EQ(listing.skipped, 0u);
}

TEST(HttpFolder, SkipsHiddenNamesAndWhatIsNoFile)
{
    http_folder folder;
    folder.file(".secret", "a").file(".git/config", "b").file("seen", "c");
    ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
    const folder_listing listing = list_folder(folder.path(), 100);
    EXPECT_THAT(paths_of(listing), ElementsAre("/seen"));
    EXPECT_EQ(listing.skipped, 3u);
}

TEST(HttpFolder, FollowsLinksThatStayInside)
{
    http_folder folder, other;
    folder.file("in/a", "a").file("in/.hidden", "h");
    other.file("secret", "s");
    fs::create_symlink("in/a", folder.path() / "file");
    fs::create_directory_symlink("in", folder.path() / "folder");
    fs::create_symlink(other.path() / "secret", folder.path() / "out");
    fs::create_directory_symlink(other.path(), folder.path() / "outside");
    fs::create_symlink("nothing", folder.path() / "dangling");
    fs::create_directory_symlink("..", folder.path() / "in/around");
    fs::create_directory_symlink(folder.path().parent_path(), folder.path() / "above");
    const folder_listing listing = list_folder(folder.path(), 100);
    EXPECT_THAT(paths_of(listing), ElementsAre("/file", "/folder/a", "/in/a"));
    EXPECT_EQ(listing.skipped, 4 + 2 * 2u) << "four here, and two in each view of `in`";
}

TEST(HttpFolder, TakesAFolderBesideForAnother)
{
    http_folder folder;
    folder.file("www/a", "a").file("www-private/b", "b");
    fs::create_symlink("../www-private/b", folder.path() / "www/link");
    EXPECT_THAT(paths_of(list_folder(folder.path() / "www", 100)), ElementsAre("/a"));
}

TEST(HttpFolder, RefusesWhatItCannotHonor)
{
    http_folder folder;
    folder.file("a", "12345").file("b", "12345");
    const auto listed = [&](std::uint64_t limit) { list_folder(folder.path(), limit); };
    listed(10);
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { listed(9); }), HasSubstr("exceed 9 bytes"));
    EXPECT_THAT(refusal(errc::not_found, [&] { list_folder(folder.path() / "a", 9); }), HasSubstr("not a folder"));
    EXPECT_THAT(refusal(errc::not_found, [&] { list_folder("/no/such/folder", 9); }), HasSubstr("/no/such/folder"));
    fs::resize_file(folder.path() / "a", 1u << 30);
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { listed(~0ull); }), HasSubstr("1 GiB or more"));
    fs::remove(folder.path() / "a");
    folder.file("line\nfeed", "");
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { listed(10); }), HasSubstr("control characters"));
}

/// Root reads every file, so it becomes somebody else for a while.
class as_nobody {
 public:
    as_nobody() : was_(::geteuid()) { EXPECT_TRUE(was_ != 0 || ::seteuid(65534) == 0); }
    ~as_nobody() { EXPECT_EQ(::seteuid(was_), 0); }

 private:
    uid_t was_;
};

TEST(HttpFolder, RefusesWhatItCannotRead)
{
    const as_nobody user;
    http_folder folder;
    folder.file("a", "a").file("b/c", "c");
    fs::permissions(folder.path() / "b", fs::perms::none);
    EXPECT_THAT(refusal(errc::permission_denied, [&] { list_folder(folder.path(), 100); }), HasSubstr("/b: cannot"));
    fs::permissions(folder.path() / "b", fs::perms::owner_all);
    fs::permissions(folder.path() / "a", fs::perms::none);
    EXPECT_THAT(refusal(errc::permission_denied, [&] { list_folder(folder.path(), 100); }), HasSubstr("/a: cannot"));
}

TEST(HttpFolder, KnowsMediaTypes)
{
    EXPECT_EQ(media_type("/a/b.html"), "text/html");
    EXPECT_EQ(media_type("/a/b.tar.GZ"), "application/gzip");
    EXPECT_EQ(media_type("/a.css/b"), "application/octet-stream");
    EXPECT_EQ(media_type("/a.unheard"), "application/octet-stream");
    EXPECT_EQ(media_type("/a."), "application/octet-stream");
}

TEST(HttpSite, HasEveryFileOfAFolder)
{
    http_folder folder;
    for (int each = 0; each < 300; ++each)
        folder.file("many/" + std::to_string(each), "content of " + std::to_string(each));
    const site made({.root = folder.path()});
    EXPECT_EQ(made.files(), 300u);
    EXPECT_EQ(made.file_bytes(), 300 * 11 + 10 + 90 * 2 + 200 * 3u);
    http_world world({.root = folder.path()});
    for (int each = 0; each < 300; ++each)
        EXPECT_EQ(ask(world, "/many/" + std::to_string(each)).body, "content of " + std::to_string(each));
    EXPECT_EQ(ask(world, "/many/300").status, 404);
    EXPECT_LT(world.worker.site->longest_probe, 30u);
}

TEST(HttpSite, TellsPathsOfTheSameHashApart)
{
    http_folder folder;
    folder.file("vumnbffh", "first");
    http_world alone({.root = folder.path()});
    EXPECT_EQ(ask(alone, "/snbwwxps").status, 404);
    folder.file("snbwwxps", "second");
    http_world both({.root = folder.path()});
    EXPECT_EQ(ask(both, "/vumnbffh").body, "first");
    EXPECT_EQ(ask(both, "/snbwwxps").body, "second");
}

TEST(HttpSite, ServesOddNamesByTheirEncoding)
{
    http_folder folder;
    folder.file("e f\xc3\xa4", "1").file("100%", "2").file("back\\slash", "3").file("a?b#c", "4").file("...", "5");
    http_world world({.root = folder.path()});
    EXPECT_EQ(ask(world, "/e%20f%C3%a4").body, "1");
    EXPECT_EQ(ask(world, "/e%20f\xc3\xa4").body, "1");
    EXPECT_EQ(ask(world, "/100%25").body, "2");
    EXPECT_EQ(ask(world, "/100%").status, 400);
    EXPECT_EQ(ask(world, "/back%5Cslash").body, "3");
    EXPECT_EQ(ask(world, "/a%3fb%23c").body, "4");
    EXPECT_EQ(ask(world, "/...").status, 404) << "it is hidden";
}

TEST(HttpSite, ShowsTheIndexOfAFolder)
{
    http_folder folder;
    folder.file("docs/index.html", "docs").file("empty/a", "");
    folder.file("d o/index.html", "d o");
    http_world world({.root = folder.path()});
    EXPECT_EQ(ask(world, "/docs/").body, "docs");
    EXPECT_EQ(ask(world, "/docs/index.html").body, "docs");
    EXPECT_EQ(ask(world, "/docs/.").body, "docs");
    EXPECT_EQ(ask(world, "/docs").status, 301);
    EXPECT_THAT(ask(world, "/docs").head, HasSubstr("\r\nLocation: /docs/\r\n"));
    EXPECT_THAT(ask(world, "/d%20o").head, HasSubstr("\r\nLocation: /d%20o/\r\n"));
    EXPECT_EQ(ask(world, "/empty/").status, 404);
    EXPECT_EQ(ask(world, "/empty").status, 404);
    EXPECT_THAT(ask(world, "/").body, HasSubstr("Weftio"));
}

TEST(HttpSite, LetsFilesReplaceBuiltInPagesButNotCounters)
{
    http_folder folder;
    folder.file("index.html", "mine").file("contact", "me");
    http_world world({.root = folder.path()});
    EXPECT_EQ(ask(world, "/").body, "mine");
    EXPECT_THAT(ask(world, "/").head, HasSubstr("Content-Type: text/html\r\n"));
    EXPECT_EQ(ask(world, "/contact").body, "me");
    EXPECT_EQ(ask(world, "/stats").status, 200);
    folder.file("stats", "");
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { site({.root = folder.path()}); }), HasSubstr("another name"));
}

TEST(HttpSite, RedirectsToAFolderOfTheNameOfAPage)
{
    http_folder folder;
    folder.file("contact/index.html", "folder").file("stats/index.html", "x");
    http_world world({.root = folder.path()});
    EXPECT_EQ(ask(world, "/contact").status, 301);
    EXPECT_EQ(ask(world, "/contact/").body, "folder");
    EXPECT_THAT(ask(world, "/stats").head, HasSubstr("application/json"));
}

TEST(HttpSite, AnswersThatNothingHasChanged)
{
    http_folder folder;
    folder.file("a.png", "picture");
    fs::last_write_time(folder.path() / "a.png", fs::file_time_type::clock::from_sys(std::chrono::sys_seconds{}));
    http_world world({.root = folder.path()});
    const http_reply whole = ask(world, "/a.png");
    EXPECT_THAT(whole.head, HasSubstr("\r\nLast-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\n"));
    const std::size_t at = whole.head.find("\r\nETag: ") + 8;
    const std::string tag = whole.head.substr(at, 18), digits = tag.substr(1, 16);
    for (const std::string& same : {tag, "W/" + tag, "\"a\", " + tag, tag + ",\"b\"", std::string("*")}) {
        const http_reply reply = ask(world, "/a.png", "If-None-Match: " + same + "\r\n");
        EXPECT_EQ(reply.status, 304) << same;
        EXPECT_EQ(reply.body, "");
        EXPECT_THAT(reply.head, HasSubstr("\r\nETag: " + tag + "\r\n"));
        EXPECT_THAT(reply.head, Not(HasSubstr("Content-Length")));
    }
    for (const std::string& other :
         {digits, "\"" + digits, digits + "\"", "w/" + tag, "\"" + digits.substr(1) + "g\"",
          "\"" + digits.substr(1) + "\"", "\"0" + digits + "\"", std::string(), std::string("**")})
        EXPECT_EQ(ask(world, "/a.png", "If-None-Match: " + other + "\r\n").status, 200) << other;
    EXPECT_EQ(ask(world, "/none", "If-None-Match: *\r\n").status, 404);
    EXPECT_EQ(ask(world, "/stats", "If-None-Match: *\r\n").status, 200);
}

TEST(HttpSite, SaysSoWhenAFileChangesBeforeItIsRead)
{
    http_folder folder;
    folder.file("a", "12345");
    const site made({.root = folder.path()});
    std::vector<std::byte> image(made.bytes());
    folder.file("a", "123456");
    EXPECT_THAT(refusal(errc::in_use, [&] { made.write(image); }), HasSubstr("5 bytes"));
    fs::remove(folder.path() / "a");
    EXPECT_THAT(refusal(errc::not_found, [&] { made.write(image); }), HasSubstr("cannot read"));
    fs::create_symlink("/dev/zero", folder.path() / "a");
    EXPECT_THAT(refusal(errc::not_found, [&] { made.write(image); }), HasSubstr("cannot read"));
}

TEST(HttpSite, RefusesNamesOfCountersThatJsonCannotHave)
{
    const auto made = [](std::vector<counter_name> names) { stats_texts({.counters = std::move(names)}); };
    for (const char* empty : {"", ".a", "a.", "a..b"})
        EXPECT_THAT(refusal(errc::invalid_argument, [&] { made({{empty}}); }), HasSubstr("is empty"));
    for (const auto& two : {std::pair{"a", "a"}, {"a", "a.b"}, {"a.b", "a"}, {"a.b.c", "a.b"}})
        EXPECT_THAT(refusal(errc::invalid_argument,
                            [&] {
                                made({{two.first}, {two.second}});
                            }),
                    HasSubstr("already used"));
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { made({{"a.b"}, {"c"}, {"a.d"}}); }), HasSubstr("\"a.d\""));
}

TEST(HttpSite, WritesTextsOfNestedGroups)
{
    EXPECT_THAT(stats_texts({}), ElementsAre("{\n}\n"));
    EXPECT_THAT(stats_texts({.counters = {{"a.b.c"}, {"a.b.d"}, {"a.e"}, {"f.g"}}, .facts = {{"t\\", "\x01"}}}),
                ElementsAre("{\n  \"t\\\\\": \"\\u0001\",\n  \"a\": {\n    \"b\": {\n      \"c\": ", ",\n      \"d\": ",
                            "\n    },\n    \"e\": ", "\n  },\n  \"f\": {\n    \"g\": ", "\n  }\n}\n"));
}

} // namespace

} // namespace weftio::packets
