#include <gtest/gtest.h>

#include "datatype/spec.hpp"

namespace weft::datatype {
namespace {

TEST(Parse, AcceptsMpisNamesAndAnySpacing) {
  EXPECT_EQ(to_string(parse("  MPI_Type_vector ( 1K,1 , 2, MPI_DOUBLE ) ")),
            "vector(1024, 1, 2, double)");
  EXPECT_EQ(to_string(parse("MPI_Type_create_hindexed_block(2,[0,-8],MPI_INT)")),
            "hindexed_block(2, [0, -8], int)");
  EXPECT_EQ(to_string(parse("struct([],[],[])")), "struct([], [], [])");
  EXPECT_EQ(to_string(parse("darray(1,[8,4],[Block,none],[default,DEFAULT],[2,1],fortran,int)")),
            "darray(1, [8, 4], [block, none], [default, default], [2, 1], F, int)");
}

struct Wrong {
  const char* text;
  std::size_t position;
  const char* says;
};

class ParseErrors : public testing::TestWithParam<Wrong> {};

TEST_P(ParseErrors, SayWhereAndWhy) {
  const Wrong& wrong = GetParam();
  try {
    parse(wrong.text);
    FAIL() << wrong.text;
  } catch (const SyntaxError& e) {
    EXPECT_EQ(e.position(), wrong.position) << wrong.text << ": " << e.what();
    EXPECT_NE(std::string(e.what()).find(wrong.says), std::string::npos) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    , ParseErrors,
    testing::Values(Wrong{"", 0, "expected a datatype"}, Wrong{"dubble", 0, "unknown datatype"},
                    Wrong{"vektor(1,2,3,int)", 0, "unknown constructor"},
                    Wrong{"vector(1,2,int)", 11, "expected a number"},
                    Wrong{"vector(1,2,3,int", 16, "the text ends here"},
                    Wrong{"vector(1,2,3 int)", 13, "expected ','"},
                    Wrong{"double double", 7, "text after"},
                    Wrong{"contiguous(99999999999999999999,int)", 11, "64 bits"},
                    Wrong{"contiguous(9007199254740991G,int)", 11, "64 bits"},
                    Wrong{"indexed(1,[2],int)", 8, "expected a list"},
                    Wrong{"indexed([1,2],[2],int)", 8, "one length"},
                    Wrong{"struct([1],[2],[int,int])", 7, "one length"},
                    Wrong{"subarray([4],[2],[0],X,int)", 21, "C or F"},
                    Wrong{"darray(0,[4],[blok],[1],[1],C,int)", 14, "none, block or cyclic"},
                    Wrong{"darray(0,[4],[block],[x],[1],C,int)", 22, "default"},
                    Wrong{"resized(int,0)", 13, "expected ','"}));

TEST(Parse, RefusesEndlessNesting) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "dup(";
  EXPECT_THROW(parse(text), SyntaxError);
}

}  // namespace
}  // namespace weft::datatype
