// Kernel headers as text in the program.
#include <fstream>
#include <iterator>

#include "core/embed.hpp"
#include "embed_other.hpp"
#include "fixture.hpp"
#include "kernels.h"
#include "source_folder.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(count_lanes, "kernels.h"); // defined in device_test.cpp and embed_other.cpp too
WEFTIO_EMBED(this_test, "embed_test.cpp");

namespace weftio::test {

namespace {

std::string text_of(const std::string& name)
{
    std::ifstream file(source_folder() / "tests/unit/device" / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Embed, GivesTheBytesOfTheFile)
{
    ASSERT_GT(text_of("embed_test.cpp").size(), 100u);
    EXPECT_EQ(this_test(), text_of("embed_test.cpp"));
    EXPECT_EQ(this_test().data()[this_test().size()], '\0');
}

TEST(DefineKernel, CarriesNameTextAndFunction)
{
    EXPECT_STREQ(count_lanes_kernel.name, "count_lanes");
    EXPECT_STREQ(count_lanes_kernel.file, "kernels.h");
    EXPECT_EQ(count_lanes_kernel.source, text_of("kernels.h"));
    EXPECT_EQ(count_lanes_kernel.function, &count_lanes);
    EXPECT_TRUE(count_lanes_kernel.cuda_image.empty());
}

TEST(DefineKernel, WorksInSeveralTranslationUnits)
{
    const kernel<weftio_u32*>& other = kernel_of_other_unit();
    EXPECT_EQ(other.source, count_lanes_kernel.source);
    EXPECT_EQ(other.function, count_lanes_kernel.function);
}

} // namespace

} // namespace weftio::test
