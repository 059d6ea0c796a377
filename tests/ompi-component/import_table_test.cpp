#include "ompi-component/hook/import_table.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace weft::ompi {
namespace {

pid_t nobody() {
  return -7;
}

const void* this_program() {
  return reinterpret_cast<const void*>(&nobody);
}

TEST(ImportTable, AFunctionIsReplacedAndPutBack) {
  const pid_t parent = getppid();
  void** import = import_of(this_program(), "getppid");
  ASSERT_NE(import, nullptr);
  void* const before = *import;
  ASSERT_TRUE(set_import(import, reinterpret_cast<void*>(&nobody)));
  EXPECT_EQ(getppid(), -7);
  ASSERT_TRUE(set_import(import, before));
  EXPECT_EQ(getppid(), parent);
}

TEST(ImportTable, WhatIsNotCalledIsNotFound) {
  EXPECT_EQ(import_of(this_program(), "no_such_function"), nullptr);
  EXPECT_EQ(import_of(this_program(), "getppi"), nullptr);
  EXPECT_EQ(import_of(this_program(), ""), nullptr);
}

TEST(ImportTable, AnAddressOfNoLibraryHasNone) {
  const int on_the_stack = 0;
  EXPECT_EQ(import_of(&on_the_stack, "getppid"), nullptr);
  EXPECT_EQ(import_of(nullptr, "getppid"), nullptr);
}

TEST(ImportTable, OnlyTheOneLibrarysCallsChange) {
  const void* mpi = dlsym(RTLD_DEFAULT, "MPI_Init");
  ASSERT_NE(mpi, nullptr);
  void** import = import_of(mpi, "getpid");
  ASSERT_NE(import, nullptr);
  void* const before = *import;
  ASSERT_TRUE(set_import(import, reinterpret_cast<void*>(&nobody)));
  EXPECT_NE(getpid(), -7);
  ASSERT_TRUE(set_import(import, before));
}

}  // namespace
}  // namespace weft::ompi
