#include "rdma_cm/service_ports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <thread>

#include "engine/failure.hpp"

namespace weftio::test {

namespace {

namespace fs = std::filesystem;
using verbs::rdma_cm::claimed_port;
using verbs::rdma_cm::family;
using verbs::rdma_cm::service_ports;
using verbs::rdma_cm::sweep_ports;

constexpr std::uint16_t tcp = 0x0106, port = 7300;
constexpr uid_t first_user = 65533, second_user = 65534;
constexpr net::roce_gid address{0xfe, 0x80, 1};

/// A folder to which all users can write, which is removed.
class ServicePorts : public testing::Test {
 protected:
    ServicePorts()
    {
        std::string name = (fs::canonical(fs::temp_directory_path()) / "weftio-ports.XXXXXX").string();
        place_ = ::mkdtemp(name.data());
        ::chmod(place_.c_str(), 01777);
    }
    ~ServicePorts() override { fs::remove_all(place_); }

    service_ports ports_of(const std::string& wire) const { return service_ports(wire, {place_}); }

    std::optional<claimed_port> claim(const std::string& wire) const
    {
        return ports_of(wire).claim(tcp, port, family::ipv4, address);
    }

    std::optional<net::roce_gid> owner(const std::string& wire) const
    {
        return ports_of(wire).owner(tcp, port, family::ipv4);
    }

    /// The names of the folders, as root sees them.
    std::vector<std::string> names() const
    {
        std::vector<std::string> found;
        for (const auto& each : fs::directory_iterator(place_))
            found.push_back(each.path().filename().string());
        return found;
    }

    /// What a child of another user returns, -1 if it is killed. It ends without giving back what it has.
    template <class Work>
    static int as_user(uid_t user, Work&& work)
    {
        const pid_t child = ::fork();
        if (child == 0) {
            if (user != ::geteuid() && (::setresgid(user, user, user) != 0 || ::setresuid(user, user, user) != 0))
                ::_exit(99);
            ::_exit(work());
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    /// Claims and ends like a process that is killed.
    int claim_and_end(uid_t user, const std::string& wire) const
    {
        return as_user(user, [&] { return new std::optional(claim(wire)) == nullptr; });
    }

    fs::path place_;
};

TEST_F(ServicePorts, HaveOneOwner)
{
    {
        const auto mine = claim("wire");
        ASSERT_TRUE(mine);
        EXPECT_EQ(address, owner("wire"));
        EXPECT_FALSE(claim("wire"));
        EXPECT_TRUE(ports_of("wire").claim(tcp, port, family::ipv6, address));
    }
    EXPECT_FALSE(owner("wire"));
    EXPECT_TRUE(claim("wire"));
}

TEST_F(ServicePorts, OfWiresThatDifferInPunctuationAreApart)
{
    const auto first = claim("lab.1"), second = claim("lab-1"), third = claim("lab_1"), fourth = claim("lab%2E1"),
               fifth = claim("lab/1");
    EXPECT_TRUE(first && second && third && fourth && fifth);
    EXPECT_EQ(5u, names().size());
}

TEST_F(ServicePorts, AreSharedByUsers)
{
    if (::geteuid() != 0)
        GTEST_SKIP() << "needs root, for two users";
    const auto mine = claim("iface:eth0");
    EXPECT_EQ(0, as_user(first_user, [&] { return claim("iface:eth0").has_value(); }));
    EXPECT_EQ(0, as_user(first_user, [&] { return owner("iface:eth0") != address; }));
    EXPECT_EQ(0, as_user(first_user, [&] { return !claim("iface:eth1"); }));
    EXPECT_EQ(1u, names().size()) << "who was refused has left a folder";
}

TEST_F(ServicePorts, OfAnotherUsersProcessThatHasEndedAreFree)
{
    if (::geteuid() != 0)
        GTEST_SKIP() << "needs root, for two users";
    ASSERT_EQ(0, claim_and_end(first_user, "iface:eth0"));
    ASSERT_EQ(1u, names().size());
    EXPECT_EQ(0, as_user(second_user, [&] { return owner("iface:eth0").has_value() || !claim("iface:eth0"); }));
}

TEST_F(ServicePorts, AreReadWhateverTheUmaskOfTheirOwner)
{
    if (::geteuid() != 0)
        GTEST_SKIP() << "needs root, for two users";
    const mode_t before = ::umask(0077);
    const auto mine = claim("iface:eth0");
    ::umask(before);
    EXPECT_EQ(0, as_user(first_user, [&] { return owner("iface:eth0") != address; }));
}

TEST_F(ServicePorts, AreRefusedInAFolderOfAnotherUser)
{
    if (::geteuid() != 0)
        GTEST_SKIP() << "needs root, for two users";
    const fs::path folder = place_ / "weftio-ports-0-wire";
    fs::create_directory(folder);
    ASSERT_EQ(0, ::chown(folder.c_str(), first_user, first_user));
    int why = 0;
    try {
        claim("wire");
    } catch (const verbs::failure& wrong) {
        why = wrong.number;
    }
    EXPECT_EQ(EACCES, why);
}

TEST_F(ServicePorts, LeaveNoFolder)
{
    auto first = claim("wire");
    auto second = ports_of("wire").claim(tcp, port + 1, family::ipv4, address);
    first.reset();
    EXPECT_THAT(names(), testing::ElementsAre(testing::HasSubstr("-wire")));
    second.reset();
    EXPECT_TRUE(names().empty());
}

/// Each of two threads removes the folder whenever it has the last port.
TEST_F(ServicePorts, AreTakenWhileOthersRemoveTheFolder)
{
    constexpr int rounds = 2000;
    std::atomic<int> taken = 0;
    const auto take = [&](std::uint16_t number) {
        const service_ports ports = ports_of("wire");
        for (int round = 0; round != rounds; ++round) {
            taken += ports.claim(tcp, number, family::ipv4, address).has_value();
            sweep_ports({place_});
        }
    };
    std::thread other([&] { take(port + 1); });
    take(port);
    other.join();
    EXPECT_EQ(2 * rounds, taken);
    EXPECT_TRUE(names().empty());
}

/// Two threads give the port to each other while a third one sweeps: an owner is lost when its file is removed.
TEST_F(ServicePorts, KeepTheirOwnerWhileFilesAreRemoved)
{
    constexpr int rounds = 2000;
    std::atomic<int> lost = 0;
    std::atomic<bool> ended = false;
    const auto take = [&] {
        const service_ports ports = ports_of("wire");
        for (int round = 0; round != rounds; ++round)
            if (const auto mine = ports.claim(tcp, port, family::ipv4, address))
                lost += ports.owner(tcp, port, family::ipv4) != address;
    };
    std::thread sweeper([&] {
        while (!ended)
            sweep_ports({place_});
    });
    std::thread other(take);
    take();
    other.join();
    ended = true;
    sweeper.join();
    EXPECT_EQ(0, lost);
}

TEST_F(ServicePorts, OfEndedProcessesAreSwept)
{
    const auto mine = claim("alive");
    ASSERT_EQ(0, claim_and_end(::geteuid(), "wire"));
    ASSERT_EQ(0, as_user(::geteuid(), [&] {
                  return !new std::optional(ports_of("alive").claim(tcp, port + 1, family::ipv4, address));
              }));
    ASSERT_EQ(2u, names().size());
    sweep_ports({place_});
    EXPECT_THAT(names(), testing::ElementsAre(testing::HasSubstr("-alive")));
    EXPECT_EQ(address, owner("alive"));
    EXPECT_EQ(1, std::distance(fs::directory_iterator(place_ / names().front()), {}));
}

TEST_F(ServicePorts, AreSweptOnlyInFoldersOfTheUser)
{
    if (::geteuid() != 0)
        GTEST_SKIP() << "needs root, for two users";
    ASSERT_EQ(0, claim_and_end(first_user, "wire"));
    std::ofstream(place_ / "weftio-ports-0-file");
    fs::create_directory(place_ / "weftio-portside-0-wire");
    sweep_ports({place_});
    EXPECT_EQ(3u, names().size());
}

/// Sandboxes forbid writing files.
TEST_F(ServicePorts, AreRefusedBeyondTheFileSizeLimit)
{
    EXPECT_EQ(EFBIG, as_user(::geteuid(), [&] {
                  const rlimit none{};
                  ::signal(SIGXFSZ, SIG_DFL);
                  ::setrlimit(RLIMIT_FSIZE, &none);
                  try {
                      return claim("wire") ? 0 : 1;
                  } catch (const verbs::failure& why) {
                      return why.number;
                  }
              }));
    EXPECT_TRUE(names().empty());
}

} // namespace
} // namespace weftio::test
