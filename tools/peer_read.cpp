#include "tools/peer_read.hpp"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace weft::tools {
namespace {

[[noreturn]] void read_from(pid_t owner, const char* address) {
  char byte = 0;
  const iovec local{&byte, 1};
  const iovec remote{const_cast<char*>(address), 1};
  _exit(process_vm_readv(owner, &local, 1, &remote, 1, 0) == 1 ? 0 : 1);
}

}  // namespace

PeerRead try_peer_read() noexcept {
  // The same address in both children: they are copies of this process.
  static const char byte = 42;
  const pid_t owner = fork();
  if (owner == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  if (owner < 0) return PeerRead::unknown;
  PeerRead result = PeerRead::unknown;
  const pid_t reader = fork();
  if (reader == 0) read_from(owner, &byte);
  int status = 0;
  if (reader > 0) {
    while (waitpid(reader, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status))
      result = WEXITSTATUS(status) == 0 ? PeerRead::allowed : PeerRead::forbidden;
  }
  kill(owner, SIGKILL);
  while (waitpid(owner, &status, 0) < 0 && errno == EINTR) {
  }
  return result;
}

}  // namespace weft::tools
