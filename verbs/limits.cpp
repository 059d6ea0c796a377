#include "verbs/limits.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weft::verbs {

namespace {

struct Profile {
  const char* name;
  Limits limits;
};

Limits connectx() {
  Limits limits;
  limits.max_sge = 30;
  limits.max_srq_sge = 31;
  limits.max_srq_wr = 32767;
  limits.max_cqe = (1 << 22) - 1;
  limits.max_reads = 16;
  limits.atomics_with_cpu = false;
  return limits;
}

Profile chosen() {
  const char* name = std::getenv("WEFT_HCA_PROFILE");
  if (name == nullptr || *name == '\0' || std::strcmp(name, "default") == 0) return {"default", {}};
  if (std::strcmp(name, "connectx") == 0) return {"connectx", connectx()};
  std::fprintf(stderr,
               "weft: WEFT_HCA_PROFILE=%s is no profile (default, connectx): default is used\n",
               name);
  return {"default", {}};
}

const Profile& profile() {
  static const Profile profile = chosen();
  return profile;
}

}  // namespace

const Limits& limits() {
  return profile().limits;
}

const char* profile_name() {
  return profile().name;
}

}  // namespace weft::verbs
