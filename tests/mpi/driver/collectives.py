"""Collectives on device memory, against the modules that were there before; one-sided counters."""

import re
import socket

from . import jobs
from .jobs import Failure
from .tap import Case


def collective_cases(suite):
    program = suite.program("tests/mpi/collective_mix")

    def mix(np, rounds, seed, *words, mca=(), env=None):
        suite.launcher.mpi([program, "--rounds", rounds, "--seed", seed, *words], np=np, mca=mca,
                           env=env, timeout=1500 if suite.long else 120).expect_line(r"^OK\b")

    for i, np in enumerate((2, 3, 4, 8)):
        rounds = 100000 if suite.long else 2000
        yield Case(f"{rounds} collectives at random, {np} ranks",
                   lambda np=np, rounds=rounds, i=i: mix(np, rounds, suite.seed + i))
    yield Case("collectives at random in four threads, 3 ranks",
               lambda: mix(3, 4000 if suite.long else 300, suite.seed + 5, "--threads"))
    number = 10000 if suite.long else 1000
    yield Case(f"{number} communicators made, used and freed",
               lambda: mix(3, 100, suite.seed + 6, "--churn", number))
    if suite.stock:
        return
    for name, mca, env in (
        ("with device memory for one communicator", [], {"WEFT_DM_SIZE": "4096"}),
        ("without device memory", [], {"WEFT_DM_SIZE": "64"}),
        ("with a device that cannot be opened", ["--mca", "coll_weft_device", "no/name"], {}),
        ("with payloads of at most 56 bytes", ["--mca", "coll_weft_max_size", "0"], {}),
        ("with all the device memory", ["--mca", "coll_weft_board_size", "200000", "--mca",
                                        "coll_weft_max_size", "100000"], {}),
        ("in groups of two, led by their first", ["--mca", "coll_weft_group_size", "2"], {}),
        ("over pml ob1", ["--mca", "pml", "ob1"], {}),
    ):
        yield Case(f"collectives at random {name}, 3 ranks",
                   lambda mca=mca, env=env: mix(3, 600, suite.seed + 7, "--churn", 60, mca=mca,
                                                env=env))

    def on_two_nodes():
        # Two host names by UTS namespaces: Open MPI takes them for two nodes.
        agent = suite.scratch / "agent"
        agent.write_text("#!/bin/sh\nhost=$1; shift\n"
                         'exec unshare --uts sh -c "hostname $host; $*"\n')
        agent.chmod(0o700)
        mix(4, 3000, suite.seed + 8, "--churn", 100,
            mca=["--host", f"{socket.gethostname()}:2,elsewhere:2", "--mca", "plm_rsh_agent",
                 str(agent)])

    for np, size in ((3, 2), (8, 3)) if suite.long else ():
        yield Case(f"collectives at random in groups of {size}, {np} ranks",
                   lambda np=np, size=size: mix(np, 20000, suite.seed + 9, mca=[
                       "--mca", "coll_weft_group_size", str(size)]))
    if suite.long:
        yield Case("collectives at random on two nodes", on_two_nodes)

    def nothing_left_in_use():
        info = suite.weft_info()
        report = jobs.run([str(info), "--no-check"], 20).expect_success().output
        if "device memory" in report and "nobody has it open" not in report:
            in_use = re.search(r"device memory +(\d+) of", report)
            if in_use and in_use[1] != "0":
                raise Failure(f"{in_use[1]} bytes are in use", report)

    def one_sided(program, np, *mca):
        suite.launcher.mpi([suite.program(f"tests/mpi/{program}")], np=np,
                           mca=["--mca", "osc", "ucx", *mca], timeout=180).expect_line(r"^OK\b")

    for np in (2, 4):
        # Stock osc/ucx waits for ever here: its targets would have to call MPI.
        yield Case(f"one-sided counters over osc/ucx, targets compute, {np} ranks",
                   lambda np=np: one_sided("counters_one_sided", np))
        yield Case(f"windows of osc/ucx in every way of synchronisation, {np} ranks",
                   lambda np=np: one_sided("window_locks", np))
    yield Case("windows of osc/ucx without offloading",
               lambda: one_sided("window_locks", 2, "--mca", "hook_weft_enable", "0"))
    yield Case("no device memory is in use afterwards", nothing_left_in_use)
