// For tests of what taking an interface does to it: log lines, frames from the other end, XDP programs.
#pragma once

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "own_network.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {

inline void shell(const std::string& command)
{
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

inline std::string output_of(const std::string& command)
{
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
    std::string text;
    for (int letter = 0; pipe && (letter = std::fgetc(pipe.get())) != EOF;)
        text += static_cast<char>(letter);
    return text;
}

/// The log lines of a level from now on.
class lines_logged {
 public:
    explicit lines_logged(log_level level)
    {
        set_log_sink([this, level](log_level of, std::string_view line) {
            const std::scoped_lock lock(mutex_);
            if (of == level)
                lines_.emplace_back(line);
        });
    }
    ~lines_logged() { set_log_sink({}); }
    /// Those of the library itself.
    std::vector<std::string> of_weftio() const
    {
        const std::scoped_lock lock(mutex_);
        std::vector<std::string> found;
        std::ranges::copy_if(lines_, std::back_inserter(found),
                             [](const std::string& line) { return line.starts_with("weftio: "); });
        return found;
    }

 private:
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

/// Sends frames from an interface, which a packet socket does as they are.
class other_end {
 public:
    explicit other_end(const char* interface) : socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0))
    {
        sockaddr_ll at{};
        at.sll_family = AF_PACKET;
        at.sll_ifindex = static_cast<int>(if_nametoindex(interface));
        EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    }
    ~other_end() { ::close(socket_); }
    void send(const std::vector<std::uint8_t>& frame) const
    {
        EXPECT_EQ(::send(socket_, frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
    }

 private:
    int socket_;
};

inline void append_be(std::vector<std::uint8_t>& to, unsigned value)
{
    to.push_back(static_cast<std::uint8_t>(value >> 8));
    to.push_back(static_cast<std::uint8_t>(value));
}

/// Ethernet with these bytes behind the two MACs.
inline std::vector<std::uint8_t> frame_of(const std::vector<std::uint8_t>& behind)
{
    std::vector<std::uint8_t> frame{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
    frame.insert(frame.end(), behind.begin(), behind.end());
    frame.resize(std::max<std::size_t>(frame.size(), 60));
    return frame;
}

/// A piece of an IPv4 packet of protocol UDP. @param fragment  the word of flags and offset
inline std::vector<std::uint8_t> ipv4_frame(const std::vector<std::uint8_t>& payload, unsigned fragment)
{
    std::vector<std::uint8_t> packet{0x08, 0x00, 0x45, 0};
    append_be(packet, static_cast<unsigned>(20 + payload.size()));
    append_be(packet, 4711);
    append_be(packet, fragment);
    packet.insert(packet.end(), {64, 17, 0, 0, 10, 9, 8, 1, 10, 9, 8, 2});
    std::uint32_t sum = 0;
    for (std::size_t at = 2; at < 22; at += 2)
        sum += static_cast<std::uint32_t>(packet[at] << 8 | packet[at + 1]);
    const std::uint32_t folded = ~((sum & 0xffff) + (sum >> 16));
    packet[12] = static_cast<std::uint8_t>(folded >> 8);
    packet[13] = static_cast<std::uint8_t>(folded);
    packet.insert(packet.end(), payload.begin(), payload.end());
    return frame_of(packet);
}

inline std::vector<std::uint8_t> udp_frame(unsigned source)
{
    std::vector<std::uint8_t> udp;
    append_be(udp, source);
    append_be(udp, 4000);
    append_be(udp, 8 + 32);
    append_be(udp, 0);
    udp.resize(8 + 32);
    return ipv4_frame(udp, 0);
}

/// Runs the engine of an inline port until `rule` has met `count` packets, or out of patience. Returns how many it met.
inline std::uint64_t met(port& port, const flow& rule, std::uint64_t count)
{
    eventually([&] {
        while (port.turn() != 0) {
        }
        return rule.hits().packets >= count;
    });
    return rule.hits().packets;
}

/// A program that passes every packet on, compiled by clang, as a firewall's would be. `file()` is empty without clang.
class foreign_program {
 public:
    foreign_program()
    {
        char name[] = "/tmp/weftio-xdp-XXXXXX";
        folder_ = ::mkdtemp(name);
        const std::string source = folder_ + "/pass.c", object = folder_ + "/pass.o";
        std::FILE* const file = std::fopen(source.c_str(), "w");
        std::fputs("#define SEC(n) __attribute__((section(n), used))\n"
                   "SEC(\"xdp\") int pass(void *c) { return 2; }\n"
                   "char _license[] SEC(\"license\") = \"GPL\";\n",
                   file);
        std::fclose(file);
        for (const char* compiler : {"clang", "clang-14"})
            if (file_.empty() &&
                std::system((std::string(compiler) + " -O2 -target bpf -c " + source + " -o " + object + " 2>/dev/null")
                                .c_str()) == 0)
                file_ = object;
    }
    ~foreign_program() { shell("rm -rf " + folder_); }
    const std::string& file() const { return file_; }
    /// @param way  of ip-link: xdp, xdpgeneric
    void attach(const char* interface, const char* way = "xdp") const
    {
        shell(std::string("ip -force link set ") + interface + " " + way + " obj " + file_ + " sec xdp");
    }

 private:
    std::string folder_, file_;
};

/// What iproute2 says of the XDP program on an interface: "xdp prog/xdp id 7"; empty: there is none.
inline std::string program_on(const char* interface)
{
    std::string text =
        output_of(std::string("ip -d link show ") + interface + " | grep -oE 'prog/xdp(generic|offload)? id [0-9]+'");
    std::erase(text, '\n');
    return text;
}

} // namespace weftio::test
