// weft-layout as a user runs it, and its pictures.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "datatype/spec.hpp"
#include "tools/layout_picture.hpp"

namespace weft::tools {
namespace {

struct Outcome {
  int status;
  std::string output;  // and errors
};

Outcome run(const std::string& arguments) {
  std::FILE* pipe = popen((WEFT_LAYOUT " " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, ""};
  std::string output;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) != 0;) {
    output.append(buffer.data(), n);
  }
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string picture(const char* text, PictureSize size = {}) {
  return ascii_picture(*build(datatype::parse(text)).layout(), size);
}

TEST(WeftLayout, ShowsWhatAColumnCompilesTo) {
  const Outcome r = run("'vector(1024,1,1026,double)'");
  EXPECT_EQ(r.status, 0);
  for (const char* part :
       {"strided(offset 0, block 8, 1024 x 8208)", "kind         strided",
        "8192 bytes in 1024 blocks", "rows of 8208 bytes", "1008 more rows", "offloaded"}) {
    EXPECT_TRUE(contains(r.output, part)) << part << " in\n" << r.output;
  }
}

TEST(WeftLayout, CountsAndNames) {
  const Outcome r = run("--count 3 --no-picture 'MPI_Type_contiguous(4, MPI_INT)'");
  EXPECT_EQ(r.status, 0);
  EXPECT_TRUE(contains(r.output, "contiguous(offset 0, 48 bytes)")) << r.output;
  EXPECT_FALSE(contains(r.output, "#"));
  EXPECT_EQ(run("'contiguous(0, int)'").status, 0);
}

TEST(WeftLayout, SaysWhyADeviceWouldNotTakeIt) {
  const Outcome r = run("'vector(8,1,100000,double)'");
  EXPECT_TRUE(contains(r.output, "connectx     not offloaded: stride bits 20, limit 16"))
      << r.output;
}

TEST(WeftLayout, PointsAtAMistake) {
  const Outcome r = run("'vector(3,2,x,int)'");
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(r.output,
            "weft-layout: expected a number, found 'x'\n  vector(3,2,x,int)\n             ^\n");
}

TEST(WeftLayout, BadInputIsStatusTwo) {
  for (const char* arguments :
       {"", "''", "'contiguous(-1,int)'", "--bogus int", "--columns 0 int", "--count x int",
        "--count -1 int", "'contiguous(4096G,contiguous(4096G,int))'", "int int"}) {
    const Outcome r = run(arguments);
    EXPECT_EQ(r.status, 2) << arguments << "\n" << r.output;
    EXPECT_FALSE(r.output.empty()) << arguments;
  }
}

TEST(WeftLayout, HelpAndVersion) {
  const Outcome help = run("--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_TRUE(contains(help.output, "subarray([sizes]"));
  const Outcome version = run("--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_TRUE(contains(version.output, "weft-layout "));
}

TEST(WeftLayout, WritesSvg) {
  const std::string file = testing::TempDir() + "weft_layout_test.svg";
  EXPECT_EQ(run("--svg " + file + " 'indexed([1,2,3],[0,5,9],int)'").status, 0);
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_TRUE(text.str().starts_with("<svg "));
  EXPECT_TRUE(contains(text.str(), "<title>block 2: 12 bytes at 36</title>"));
  EXPECT_TRUE(text.str().ends_with("</svg>\n"));
  std::remove(file.c_str());
  const Outcome r = run("--svg /nonexistent/file.svg int");
  EXPECT_EQ(r.status, 1);
  EXPECT_TRUE(contains(r.output, "cannot write /nonexistent/file.svg")) << r.output;
}

TEST(Picture, AFaceLooksLikeAFace) {
  EXPECT_EQ(picture("subarray([8, 8], [3, 4], [1, 2], C, char)", {8, 16}),
            "             8 ..####..\n"
            "            16 ..####..\n"
            "            24 ..####..\n");
}

TEST(Picture, PartlyUsedCells) {
  EXPECT_EQ(picture("vector(3, 1, 4, double)", {4, 2}),
            "             0 #...\n"
            "            32 #...\n"
            "           ... 1 more rows\n");
  EXPECT_EQ(picture("hvector(2, 1, 32, int)", {4, 2}),
            "             0 +...\n"
            "            32 +...\n");
}

TEST(Picture, NegativeOffsetsAndEndlessLayouts) {
  EXPECT_EQ(picture("resized(hvector(2, 1, -8, int), 0, 4)", {8, 4}),
            "            -8 ####....\n"
            "             0 ####....\n");
  // 2^40 blocks: only the beginning is looked at.
  EXPECT_TRUE(contains(picture("hvector(1024G, 1, 16, double)"), "of the first 1048576 blocks"));
}

TEST(Picture, BlocksInTheOrderOfTheStream) {
  const auto blocks =
      first_blocks(*build(datatype::parse("indexed_block(1, [4, 0, 9], int)")).layout(), 2);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0], (hca::Block{16, 4}));
  EXPECT_EQ(blocks[1], (hca::Block{0, 4}));
}

}  // namespace
}  // namespace weft::tools
