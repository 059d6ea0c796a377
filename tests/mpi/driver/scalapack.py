"""Debian's testers of BLACS and ScaLAPACK (scalapack-mpi-test): the same verdicts as without weft."""

import glob
import re
import shutil
from pathlib import Path

from .jobs import Failure
from .suite import expect_offloaded
from .tap import Case, Skip

DATA = Path("/usr/share/scalapack")


def find_testers():
    found = glob.glob("/usr/lib/*/scalapack/openmpi-tests")
    if not found or not DATA.exists():
        raise Skip("the package scalapack-mpi-test is not installed")
    return Path(found[0])


def working_folder(suite, auxiliary):
    """The testers read their parameters from the current folder and write their results there."""
    folder = suite.scratch / ("blacs-aux" if auxiliary else "blacs")
    if not folder.exists():
        folder.mkdir()
        for pattern in ("*.dat", "BLACS/*.dat", "PBLAS/*.dat"):
            for file in DATA.glob(pattern):
                shutil.copy(file, folder)
        if not auxiliary:
            # The auxiliary tests end in MPI_Abort: a job that is counted must reach MPI_Finalize.
            table = folder / "bt.dat"
            table.write_text(re.sub(r"'T'(\s+Run AUX)", r"'F'\1", table.read_text()))
    return folder


def verdicts(result):
    """The lines with a verdict, without times and rates, which differ from run to run."""
    lines = []
    for line in result.output.splitlines():
        if re.search(r"passed|failed|skipped|tests", line, re.IGNORECASE):
            lines.append(re.sub(r"[-+]?\d*\.\d+(E[-+]\d+)?", "_", line).split())
    if not lines:
        raise Failure("the tester printed no verdict", result.described())
    # Ranks print too: the order is mpirun's.
    return sorted(lines)


def compare_with_abort(suite, name):
    """The auxiliary tests end in MPI_Abort, and mpirun may lose what was printed just before, with or
    without weft: such a pair of runs says nothing."""
    for attempt in range(4):
        try:
            return compare(suite, name, auxiliary=True)
        except Failure as failure:
            if attempt == 3 or "another verdict" not in str(failure):
                raise
    raise AssertionError("not reached")


def compare(suite, name, auxiliary=False, offloaded=False):
    tester = find_testers() / name
    how = dict(np=4, timeout=300, cwd=working_folder(suite, auxiliary))
    plain = suite.plain.mpi([tester], **how)
    if suite.stock:
        return f"{len(verdicts(plain))} verdicts"
    counts = None
    if offloaded:
        ours, counts = suite.counted(suite.launcher, [tester],
                                     mca=["--mca", "hook_weft_stats", "1"], **how)
    else:
        ours = suite.launcher.mpi([tester], **how)
    if ours.timed_out or ours.status != plain.status:
        raise Failure(f"exit status {ours.status}, without weft {plain.status}", ours.described())
    expected, got = verdicts(plain), verdicts(ours)
    if len(expected) != len(got):
        raise Failure(f"another verdict than without weft: the number of lines is {len(got)}, not "
                      f"{len(expected)}", ours.described())
    if expected != got:
        different = next(" ".join(g) for e, g in zip(expected, got) if e != g)
        raise Failure(f"another verdict than without weft: {different}", ours.described())
    return expect_offloaded(counts, ours) if offloaded else f"{len(got)} verdicts"


def scalapack_cases(suite):
    yield Case("BLACS tester xCbtest, verdicts and 99 % offloaded",
               lambda: compare(suite, "xCbtest", offloaded=True))
    yield Case("BLACS tester xFbtest, verdicts and 99 % offloaded",
               lambda: compare(suite, "xFbtest", offloaded=True))
    names = ["xdlu", "xdqr", "PBLAS/dpb1tst", "PBLAS/dpb2tst", "PBLAS/dpb3tst"]
    if suite.long:
        names += ["xslu", "xclu", "xzlu", "xsqr", "xzqr", "xdllt", "xzllt"]
        names += [f"PBLAS/{kind}pb{level}tst" for kind in "scz" for level in (1, 2, 3)]
        # Whether their last lines come out is mpirun's luck: not for every day.
        for name in ("xCbtest", "xFbtest"):
            yield Case(f"BLACS tester {name} with its auxiliary tests",
                       lambda name=name: compare_with_abort(suite, name))
    for name in names:
        yield Case(f"ScaLAPACK tester {name}", lambda name=name: compare(suite, name))
