#include <doca_error.h>
#include <doca_version.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

namespace weftio::test {

namespace {

using testing::StartsWith;

TEST(DocaError, HasANameAndADescriptionForEach)
{
    std::set<std::string> names, descriptions;
    for (int number = 0; number <= DOCA_ERROR_DEVICE_FATAL_ERROR; ++number) {
        names.insert(doca_error_get_name(static_cast<doca_error_t>(number)));
        descriptions.insert(doca_error_get_descr(static_cast<doca_error_t>(number)));
    }
    EXPECT_EQ(names.size(), 32u);
    EXPECT_EQ(descriptions.size(), 32u);
}

TEST(DocaError, NamesWhatTheEnumeratorIsCalled)
{
    EXPECT_STREQ(doca_error_get_name(DOCA_SUCCESS), "DOCA_SUCCESS");
    EXPECT_STREQ(doca_error_get_name(DOCA_ERROR_IN_PROGRESS), "DOCA_ERROR_IN_PROGRESS");
    EXPECT_STREQ(doca_error_get_name(DOCA_ERROR_DEVICE_FATAL_ERROR), "DOCA_ERROR_DEVICE_FATAL_ERROR");
}

TEST(DocaError, SaysThatANumberIsNoError)
{
    doca_error_t none; // as a C program passes it: no enumerator has the number
    std::memset(&none, 0x7f, sizeof none);
    EXPECT_STREQ(doca_error_get_descr(none), "No such error");
    EXPECT_THAT(doca_error_get_name(none), StartsWith("DOCA_ERROR_"));
}

TEST(DocaError, PropagateKeepsTheFirst)
{
    doca_error_t result = DOCA_SUCCESS;
    DOCA_ERROR_PROPAGATE(result, DOCA_SUCCESS);
    EXPECT_EQ(result, DOCA_SUCCESS);
    DOCA_ERROR_PROPAGATE(result, DOCA_ERROR_NOT_FOUND);
    DOCA_ERROR_PROPAGATE(result, DOCA_ERROR_DRIVER);
    DOCA_ERROR_PROPAGATE(result, DOCA_SUCCESS);
    EXPECT_EQ(result, DOCA_ERROR_NOT_FOUND);
}

TEST(DocaVersion, IsThatOfTheApi)
{
    EXPECT_STREQ(doca_version(), "2.10.0087");
    EXPECT_THAT(doca_version_runtime(), StartsWith("2.10.0087 (Weftio "));
}

} // namespace

} // namespace weftio::test
