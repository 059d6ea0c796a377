// MPI as a single process of its own: the tests compare with what Open MPI itself packs.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>

int main(int argc, char** argv) {
  // No daemon for a single process, and none of weft's component.
  ::setenv("OMPI_MCA_ess_singleton_isolated", "1", 1);
  ::setenv("OMPI_MCA_hook_weft_enable", "0", 1);
  ::testing::InitGoogleTest(&argc, argv);
  MPI_Init(nullptr, nullptr);
  const int result = RUN_ALL_TESTS();
  MPI_Finalize();
  return result;
}
