"""A process killed in the middle of something: the job ends, and nothing is left behind."""

import os
import random
import statistics
import time

from .jobs import Failure, UCX_PML
from .tap import Case

SHARED_MEMORY = "/dev/shm"


def left_in_shared_memory():
    try:
        return sorted(name for name in os.listdir(SHARED_MEMORY) if "weft" in name.lower())
    except FileNotFoundError:
        return []


def seconds_until_end(suite, launcher, victim, microseconds, mca, work="messages"):
    """From the kill to the end of the job."""
    stamp = suite.scratch / "killed"
    stamp.unlink(missing_ok=True)
    result = launcher.mpi([suite.program("tests/mpi/kill_midway"), victim, microseconds, stamp,
                           work],
                          mca=mca, timeout=60)
    ended = time.time()
    if result.timed_out:
        raise Failure("the job never ended", result.described())
    if not stamp.exists():
        raise Failure("the job ended before anything was killed", result.described())
    return ended - float(stamp.read_text())


def kill_cases(suite):
    times = {}
    # Whoever else uses weft on this machine is not ours to judge.
    before = set(left_in_shared_memory())

    def expect_one_file(when):
        left = [name for name in left_in_shared_memory() if name not in before]
        if len(left) > 1:
            raise Failure(f"left in shared memory {when}: " + " ".join(left))

    def measure(name, launcher, mca, number, work="messages"):
        rng = random.Random(suite.seed)
        times[name] = [
            seconds_until_end(suite, launcher, i % 2, rng.randrange(1000, 60000), mca, work)
            for i in range(number)
        ]
        return f"{number} kills, median {statistics.median(times[name]):.2f} s, " \
               f"most {max(times[name]):.2f} s"

    def weft_within_two_seconds():
        note = measure("weft", suite.launcher, [], suite.kills)
        allowed = statistics.median(times["plain"]) + 2
        if max(times["weft"]) > allowed:
            raise Failure(f"{note}, allowed {allowed:.2f} s")
        return note

    def in_collectives_and_windows():
        collectives = measure("collectives", suite.launcher, [], few, "collectives")
        windows = measure("windows", suite.launcher, ["--mca", "osc", "ucx"], few, "windows")
        allowed = statistics.median(times["plain"]) + 2
        if max(times["collectives"] + times["windows"]) > allowed:
            raise Failure(f"{collectives}; {windows}; allowed {allowed:.2f} s")
        return f"{collectives}; {windows}"

    def nothing_left():
        expect_one_file("after the kills")
        suite.launcher.mpi([suite.program("examples/halo")]).expect_line(r"^halo: OK")
        expect_one_file("after a good run")

    few = min(suite.kills, 9)
    yield Case("a killed process ends the job: plain Open MPI, for comparison",
               lambda: measure("plain", suite.plain, UCX_PML, few))
    if suite.stock:
        return
    yield Case("a killed process ends the job within 2 s of that", weft_within_two_seconds)
    yield Case("and so does one killed in a collective, or amid atomic operations on windows",
               in_collectives_and_windows)
    yield Case("after kills: one file in shared memory at most, and the next job runs right",
               nothing_left)
