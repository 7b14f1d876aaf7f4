#include <doca_argp.h>
#include <doca_log.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "child.hpp"

namespace weftio::test {

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What callbacks got.
struct seen_options {
    std::vector<std::string> order;
    std::string gpu;
    std::string address;
    int timeout = 0;
    bool connect = false;
    doca_error_t answer = DOCA_SUCCESS; ///< of the callback of -gpu
};

doca_error_t see_gpu(void* value, void* configuration)
{
    auto* seen = static_cast<seen_options*>(configuration);
    seen->order.push_back("gpu");
    seen->gpu = static_cast<char*>(value);
    return seen->answer;
}

doca_error_t see_address(void* value, void* configuration)
{
    auto* seen = static_cast<seen_options*>(configuration);
    seen->order.push_back("address");
    seen->address = static_cast<char*>(value);
    return DOCA_SUCCESS;
}

doca_error_t see_timeout(void* value, void* configuration)
{
    auto* seen = static_cast<seen_options*>(configuration);
    seen->order.push_back("timeout");
    seen->timeout = *static_cast<int*>(value);
    return DOCA_SUCCESS;
}

doca_error_t see_connect(void* value, void* configuration)
{
    auto* seen = static_cast<seen_options*>(configuration);
    seen->order.push_back("connect");
    seen->connect = *static_cast<bool*>(value);
    return DOCA_SUCCESS;
}

doca_argp_param* parameter(const char* short_name, const char* long_name, doca_argp_type type,
                           doca_argp_param_cb_t callback)
{
    doca_argp_param* made = nullptr;
    EXPECT_EQ(doca_argp_param_create(&made), DOCA_SUCCESS);
    if (short_name)
        doca_argp_param_set_short_name(made, short_name);
    if (long_name)
        doca_argp_param_set_long_name(made, long_name);
    doca_argp_param_set_description(made, "An option");
    doca_argp_param_set_callback(made, callback);
    doca_argp_param_set_type(made, type);
    return made;
}

/// A parser with the options -gpu (mandatory), -sa, -t and -cm, for as long as it lives.
class started {
 public:
    explicit started(seen_options& seen)
    {
        EXPECT_EQ(doca_argp_init("tester", &seen), DOCA_SUCCESS);
        auto* gpu = parameter("gpu", "gpu", DOCA_ARGP_TYPE_STRING, see_gpu);
        doca_argp_param_set_arguments(gpu, "<PCI address>");
        doca_argp_param_set_mandatory(gpu);
        EXPECT_EQ(doca_argp_register_param(gpu), DOCA_SUCCESS);
        for (auto* one : {parameter("sa", "server-addr", DOCA_ARGP_TYPE_STRING, see_address),
                          parameter("t", nullptr, DOCA_ARGP_TYPE_INT, see_timeout),
                          parameter("cm", "use-cm", DOCA_ARGP_TYPE_BOOLEAN, see_connect)})
            EXPECT_EQ(doca_argp_register_param(one), DOCA_SUCCESS);
    }
    started(const started&) = delete;
    started& operator=(const started&) = delete;
    ~started() { EXPECT_EQ(doca_argp_destroy(), DOCA_SUCCESS); }

    doca_error_t with(std::initializer_list<const char*> arguments)
    {
        words_ = {"./tester"};
        words_.insert(words_.end(), arguments.begin(), arguments.end());
        pointers_.clear();
        for (std::string& word : words_)
            pointers_.push_back(word.data());
        pointers_.push_back(nullptr);
        return doca_argp_start(static_cast<int>(words_.size()), pointers_.data());
    }

 private:
    std::vector<std::string> words_;
    std::vector<char*> pointers_;
};

TEST(DocaArgp, UnderstandsEveryFormOfAnOption)
{
    for (auto form :
         {std::vector<const char*>{"-gpu", "ca:00.0"}, {"--gpu", "ca:00.0"}, {"-gpu=ca:00.0"}, {"--gpu=ca:00.0"}}) {
        seen_options seen;
        started parser(seen);
        EXPECT_EQ(form.size() == 2 ? parser.with({form[0], form[1]}) : parser.with({form[0]}), DOCA_SUCCESS);
        EXPECT_EQ(seen.gpu, "ca:00.0");
    }
}

TEST(DocaArgp, CallsBackInTheOrderOfTheCommandLine)
{
    seen_options seen;
    started parser(seen);
    EXPECT_EQ(parser.with({"-t", "5000000", "-cm", "--server-addr", "192.168.2.28", "-gpu", "17:00.0"}), DOCA_SUCCESS);
    EXPECT_EQ(seen.order, (std::vector<std::string>{"timeout", "connect", "address", "gpu"}));
    EXPECT_EQ(seen.timeout, 5'000'000);
    EXPECT_TRUE(seen.connect);
    EXPECT_EQ(seen.address, "192.168.2.28");
}

TEST(DocaArgp, FindsShortNamesBehindTwoDashesAndLongNamesBehindOne)
{
    seen_options seen;
    started parser(seen);
    EXPECT_EQ(parser.with({"--sa", "::1", "-use-cm", "-gpu", "17:00.0"}), DOCA_SUCCESS);
    EXPECT_EQ(seen.address, "::1");
    EXPECT_TRUE(seen.connect);
}

TEST(DocaArgp, TakesValuesThatBeginWithADash)
{
    seen_options seen;
    started parser(seen);
    EXPECT_EQ(parser.with({"-t", "-5", "-sa", "-x", "-gpu", "", "-cm=false"}), DOCA_SUCCESS);
    EXPECT_EQ(seen.timeout, -5);
    EXPECT_EQ(seen.address, "-x");
    EXPECT_EQ(seen.gpu, "");
    EXPECT_FALSE(seen.connect);
}

TEST(DocaArgp, TheLastOfTwoCounts)
{
    seen_options seen;
    started parser(seen);
    EXPECT_EQ(parser.with({"-gpu", "17:00.0", "-gpu", "ca:00.0"}), DOCA_SUCCESS);
    EXPECT_EQ(seen.gpu, "ca:00.0");
}

/// Checks that nothing is called back, and what standard error says.
void expect_refused(std::initializer_list<const char*> arguments, const std::string& sentence)
{
    seen_options seen;
    testing::internal::CaptureStderr();
    {
        started parser(seen);
        EXPECT_EQ(parser.with(arguments), DOCA_ERROR_INVALID_VALUE) << sentence;
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "tester: " + sentence + "; see tester --help\n");
    EXPECT_TRUE(seen.order.empty()) << sentence;
}

TEST(DocaArgp, RefusesWithOneSentence)
{
    const std::string gpu = "option -gpu, --gpu <PCI address>";
    expect_refused({"-t", "1"}, gpu + " is missing");
    expect_refused({"-gpu"}, gpu + " needs a value");
    expect_refused({"-gpu", "-t", "1"}, gpu + " needs a value");
    expect_refused({"-gpu", "17:00.0", "--frob"}, "unknown option \"--frob\"");
    expect_refused({"-gpu", "17:00.0", "more"}, "\"more\" is no option");
    expect_refused({"-gpu", "17:00.0", "--"}, "\"--\" is no option");
    expect_refused({"-gpu", "17:00.0", "-"}, "\"-\" is no option");
    expect_refused({"-gpu", "17:00.0", ""}, "\"\" is no option");
    for (const char* value : {"yes", "5", ""})
        expect_refused({"-gpu", "1", ("-cm=" + std::string(value)).c_str()},
                       "option -cm, --use-cm takes no value but =true and =false, not \"" + std::string(value) + "\"");
    for (const char* nameless : {"-=true", "--=5", "-="}) // -t has no long name, which is no name of no letters
        expect_refused({"-gpu", "1", nameless},
                       "\"" + std::string(nameless) + "\" has no name of an option before \"=\"");
    for (const char* number : {"", "1x", "x", "2147483648", "0x10", " 1"})
        expect_refused({"-gpu", "1", "-t", number},
                       "option -t: \"" + std::string(number) + "\" is no decimal number, or too large for an int");
}

TEST(DocaArgp, ReturnsWhatACallbackReturns)
{
    seen_options seen;
    seen.answer = DOCA_ERROR_NOT_FOUND;
    started parser(seen);
    EXPECT_EQ(parser.with({"-gpu", "17:00.0", "-t", "1"}), DOCA_ERROR_NOT_FOUND);
    EXPECT_EQ(seen.order, (std::vector<std::string>{"gpu"}));
}

TEST(DocaArgp, HelpPrintsTheOptionsAndEnds)
{
    for (const char* option : {"-h", "--help"}) {
        const ended_child ended = in_child([&] {
            seen_options seen;
            started parser(seen);
            parser.with({"-l", "15", option}); // nothing is called back, so nothing refuses 15
            return 9;
        });
        EXPECT_EQ(ended.status, 0);
        EXPECT_EQ(ended.err, "");
        EXPECT_THAT(ended.out, AllOf(HasSubstr("Usage: tester"), HasSubstr("-gpu, --gpu <PCI address>"),
                                     HasSubstr("An option (mandatory)"), HasSubstr("--sdk-log-level <level>")));
    }
}

doca_error_t print_version(void*, void* configuration)
{
    std::printf("mine, %s", static_cast<seen_options*>(configuration)->gpu.c_str());
    return DOCA_SUCCESS;
}

TEST(DocaArgp, VersionCallsBackAndEnds)
{
    const ended_child without = in_child([] {
        seen_options seen;
        started(seen).with({"--version"});
        return 9;
    });
    EXPECT_EQ(without.status, 0);
    EXPECT_THAT(without.out, HasSubstr("2.10.0087"));
    const ended_child with = in_child([] {
        seen_options seen;
        seen.gpu = "configured";
        started parser(seen);
        EXPECT_EQ(doca_argp_register_version_callback(print_version), DOCA_SUCCESS);
        parser.with({"-v"});
        return 9;
    });
    EXPECT_EQ(with.status, 0);
    EXPECT_EQ(with.out, "mine, configured");
}

TEST(DocaArgp, GoesOnWithoutHelpAndVersionThatAreFalse)
{
    const ended_child ended = in_child([] {
        seen_options seen;
        started parser(seen);
        return parser.with({"--help=false", "-v=false", "-gpu", "1"}) == DOCA_SUCCESS && seen.gpu == "1" ? 5 : 6;
    });
    EXPECT_EQ(ended.status, 5) << ended.out << ended.err;
}

TEST(DocaArgp, SetsTheLevelsOfTheLog)
{
    const ended_child ended = in_child([] {
        doca_log_backend* backend = nullptr;
        doca_log_backend_create_standard();
        doca_log_backend_create_with_file_sdk(stderr, &backend);
        seen_options seen;
        started parser(seen);
        const doca_error_t error = parser.with({"-gpu", "1", "--sdk-log-level", "10", "-l", "60"});
        doca_argp_init(nullptr, nullptr);
        doca_log_line(DOCA_LOG_LEVEL_DEBUG, "file", 1, "function", "shown");
        return static_cast<int>(error);
    });
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.out, HasSubstr("shown"));
    EXPECT_EQ(ended.err, "");
    seen_options seen;
    testing::internal::CaptureStderr();
    EXPECT_EQ(started(seen).with({"-gpu", "1", "--log-level=15"}), DOCA_ERROR_INVALID_VALUE);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("option -l, --log-level <level>: Invalid input"));
}

TEST(DocaArgp, TheProgramsNamesComeFirst)
{
    seen_options seen;
    started parser(seen);
    EXPECT_EQ(doca_argp_register_param(parameter("l", nullptr, DOCA_ARGP_TYPE_STRING, see_address)), DOCA_SUCCESS);
    EXPECT_EQ(parser.with({"-gpu", "1", "-l", "text"}), DOCA_SUCCESS);
    EXPECT_EQ(seen.address, "text");
}

TEST(DocaArgp, RefusesCallsInTheWrongOrder)
{
    char* none[] = {nullptr};
    EXPECT_EQ(doca_argp_start(0, none), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_argp_destroy(), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_argp_register_version_callback(print_version), DOCA_ERROR_BAD_STATE);
    auto* early = parameter("x", nullptr, DOCA_ARGP_TYPE_INT, see_timeout);
    EXPECT_EQ(doca_argp_register_param(early), DOCA_ERROR_BAD_STATE);
    seen_options seen;
    started parser(seen);
    EXPECT_EQ(doca_argp_init("again", nullptr), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_argp_register_param(early), DOCA_SUCCESS);
    EXPECT_EQ(doca_argp_register_param(early), DOCA_ERROR_ALREADY_EXIST);
}

TEST(DocaArgp, ParametersEndWithTheParser)
{
    seen_options seen;
    doca_argp_param* late = nullptr;
    {
        started parser(seen);
        late = parameter("x", nullptr, DOCA_ARGP_TYPE_INT, see_timeout);
        EXPECT_EQ(doca_argp_register_param(late), DOCA_SUCCESS);
    }
    EXPECT_EQ(doca_argp_register_param(late), DOCA_ERROR_INVALID_VALUE);
    doca_argp_param_set_mandatory(late);
}

TEST(DocaArgp, RefusesBadInput)
{
    EXPECT_EQ(doca_argp_init(nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_argp_param_create(nullptr), DOCA_ERROR_INVALID_VALUE);
    seen_options seen;
    started parser(seen);
    EXPECT_EQ(doca_argp_start(1, nullptr), DOCA_ERROR_INVALID_VALUE);
    char* none[] = {nullptr};
    EXPECT_EQ(doca_argp_start(-1, none), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_argp_register_param(nullptr), DOCA_ERROR_INVALID_VALUE);
    EXPECT_EQ(doca_argp_register_version_callback(nullptr), DOCA_ERROR_INVALID_VALUE);
    doca_argp_param_set_short_name(nullptr, "x");
    doca_argp_param_set_mandatory(nullptr);
    auto* nameless = parameter(nullptr, nullptr, DOCA_ARGP_TYPE_INT, see_timeout);
    doca_argp_param_set_short_name(nameless, nullptr);
    EXPECT_EQ(doca_argp_register_param(nameless), DOCA_ERROR_INVALID_VALUE);
    doca_argp_param* bare = nullptr;
    ASSERT_EQ(doca_argp_param_create(&bare), DOCA_SUCCESS);
    doca_argp_param_set_long_name(bare, "bare");
    doca_argp_param_set_type(bare, DOCA_ARGP_TYPE_UNKNOWN);
    EXPECT_EQ(doca_argp_register_param(bare), DOCA_ERROR_INVALID_VALUE); // no type
    doca_argp_param_set_type(bare, DOCA_ARGP_TYPE_INT);
    doca_argp_param_set_callback(bare, nullptr);
    EXPECT_EQ(doca_argp_register_param(bare), DOCA_ERROR_INVALID_VALUE); // no callback
    EXPECT_EQ(doca_argp_register_param(parameter(nullptr, "gpu", DOCA_ARGP_TYPE_INT, see_timeout)),
              DOCA_ERROR_ALREADY_EXIST);
}

} // namespace

} // namespace weftio::test
