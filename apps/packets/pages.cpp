#include "pages.hpp"

#include <fmt/format.h>

#include <string_view>

namespace weftio::packets {

namespace {

std::string page(std::string_view title, std::string_view body)
{
    return fmt::format(R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{}</title>
<style>
body {{ font: 18px/1.6 system-ui, sans-serif; max-width: 34em; margin: 12vh auto; padding: 0 1em; color: #223; }}
h1 {{ font-weight: 600; }}
a {{ color: #06c; }}
nav a {{ margin-right: 1.5em; }}
</style>
</head>
<body>
{}</body>
</html>
)",
                       title, body);
}

} // namespace

std::string front_page()
{
    return page("Weftio", R"(<h1>Weftio</h1>
<p>A kernel has answered this request. It owns the network queues, speaks TCP and HTTP, and no other code ran in
between.</p>
<nav><a href="/stats">Statistics</a> <a href="/contact">Contact</a></nav>
)");
}

std::string contact_page()
{
    return page("Contact - Weftio", R"(<h1>Contact</h1>
<p>This is weftio-packets, a program of Weftio. Whoever started it runs this server: <code>man weftio-packets</code> on
their machine describes it.</p>
<nav><a href="/">Front page</a> <a href="/stats">Statistics</a></nav>
)");
}

} // namespace weftio::packets
