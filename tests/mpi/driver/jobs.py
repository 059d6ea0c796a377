"""Starting MPI jobs, with weft or without, and never waiting for ever."""

import os
import re
import shlex
import signal
import subprocess
import time

UCX_PML = [
    "--mca", "pml", "ucx",
    "--mca", "opal_common_ucx_tls", "any",
    "--mca", "opal_common_ucx_devices", "any",
]


class Failure(Exception):
    """What is wrong, in a line, and the output that shows it."""

    def __init__(self, why, output=""):
        super().__init__(why)
        self.output = output


class Result:
    def __init__(self, command, status, output, seconds, timed_out):
        self.command = command
        self.status = status
        self.output = output
        self.seconds = seconds
        self.timed_out = timed_out

    def expect_success(self):
        if self.timed_out:
            raise Failure(f"still running after {self.seconds:.0f} s", self.described())
        if self.status != 0:
            raise Failure(f"exit status {self.status}", self.described())
        return self

    def expect_line(self, pattern):
        """A line that matches, and success. Returns the match."""
        self.expect_success()
        match = re.search(pattern, self.output, re.MULTILINE)
        if not match:
            raise Failure(f"no line {pattern!r}", self.described())
        return match

    def described(self):
        return f"$ {self.command}\n{self.output}"

    def counts(self):
        """The words NAME=NUMBER of pmpi_count."""
        lines = re.findall(r"pmpi_count: (.*)", self.output)
        words = re.findall(r"(\w+)=(\d+)", " ".join(lines))
        if not words:
            raise Failure("the independent count printed nothing", self.described())
        return {name: int(number) for name, number in words}


def run(command, timeout, env=None, cwd=None):
    """Runs a command in a session of its own; ends all of it when the time is over."""
    full = dict(os.environ)
    full.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    # More than two ranks or busy cores: let waiting ranks give way.
    full.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    full.update(env or {})
    shown = " ".join([f"{k}={shlex.quote(v)}" for k, v in (env or {}).items()]
                     + [shlex.quote(word) for word in command])
    began = time.monotonic()
    process = subprocess.Popen(command, env=full, cwd=cwd, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    timed_out = False
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        process.send_signal(signal.SIGTERM)  # mpirun ends its ranks on this
        try:
            output, _ = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
    return Result(shown, process.returncode, output.decode(errors="replace"),
                  time.monotonic() - began, timed_out)


class Launcher:
    """Starts programs under weftrun, or with plain Open MPI where there is no weftrun."""

    def __init__(self, weftrun=None):
        self.weftrun = weftrun

    @property
    def stock(self):
        return self.weftrun is None

    def mpi(self, program, np=2, mca=(), env=None, timeout=90, cwd=None, preload=None):
        command = ["mpirun.openmpi", "--oversubscribe", "-np", str(np), *mca]
        env = dict(env or {})
        if self.stock:
            # In case weft is installed where every mpirun finds it.
            env.setdefault("OMPI_MCA_hook_weft_enable", "0")
        else:
            command.insert(0, self.weftrun)
        if preload:
            command += ["-x", f"LD_PRELOAD={preload}"]
        command += program
        return run([str(word) for word in command], timeout, env, cwd)
