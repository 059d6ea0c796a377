"""Who is compared: each a command that prints the program's JSON lines."""

import argparse
import json
import os
import shutil
import subprocess

UCX = ["--mca", "pml", "ucx", "--mca", "opal_common_ucx_tls", "any",
       "--mca", "opal_common_ucx_devices", "any"]


def crowded(ranks):
    """Whether there are more ranks than cores for them."""
    return ranks > len(os.sched_getaffinity(0))


def open_mpi(ranks):
    """One rank per core where they suffice; else the scheduler's business."""
    place = ["--bind-to", "none"] if crowded(ranks) else ["--bind-to", "core", "--map-by", "core"]
    return ["mpirun.openmpi", "-np", str(ranks), "--oversubscribe", *place]


def mpich(ranks):
    return ["mpiexec.mpich", "-np", str(ranks), "-bind-to", "none" if crowded(ranks) else "core"]


def environment(**more):
    """Of a run: as root too, and with what is asked for."""
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)


NAMES = ("weft", "weft async", "ob1", "ucx", "mpich", "by hand", "limit")


def contender_names(text):
    """An option's value as a list of names, for argparse."""
    names = text.split(",")
    for name in names:
        if name not in NAMES:
            raise argparse.ArgumentTypeError(
                f"no contender is called '{name}'; there are {', '.join(NAMES)}")
    return names


class Contender:
    def __init__(self, name, command, env, ranks=2):
        self.name = name
        self.ranks = ranks
        self.command = [str(word) for word in command]
        self.env = env

    def run(self, arguments, timeout):
        """Seconds by shape number, and the shapes themselves."""
        env = environment(**self.env)
        # Waiting ranks keep their core, and no contender is told otherwise by accident; on fewer
        # cores than ranks Open MPI has them yield by itself.
        env.pop("OMPI_MCA_mpi_yield_when_idle", None)
        if not crowded(self.ranks):
            env["OMPI_MCA_mpi_yield_when_idle"] = "0"
        env.pop("OMPI_MCA_hwloc_base_binding_policy", None)
        command = self.command + arguments
        try:
            done = subprocess.run(command, env=env, timeout=timeout, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        except subprocess.TimeoutExpired as late:
            raise RuntimeError(f"{self.name}: no end after {timeout} s: {' '.join(command)}") from late
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        wrong = [row["name"] for row in rows if not row["right"]]
        if wrong:
            raise RuntimeError(f"{self.name}: wrong data in {', '.join(wrong)}")
        if done.returncode != 0 or not rows:
            raise RuntimeError(f"{self.name}: exit status {done.returncode}: {' '.join(command)}\n"
                               + done.stderr[-2000:])
        return rows


# In case weft is installed where every mpirun finds it.
WITHOUT_WEFT = {"OMPI_MCA_hook_weft_enable": "0"}


def all_contenders(build, install, wanted, name="shapes", ranks=2):
    """Those that can run the program `name` here with so many ranks, of the wanted; and why the
    others cannot."""
    program = build / "benchmarks" / name
    mpich_program = build / "benchmarks" / f"{name}.mpich"
    weftrun = install / "bin/weftrun"
    plain = WITHOUT_WEFT
    launch = open_mpi(ranks)
    ob1 = [*launch, "--mca", "pml", "ob1"]
    every = [
        Contender("weft", [weftrun, *launch, program], {}, ranks),
        Contender("weft async", [weftrun, *launch, program], {"UCX_WEFT_ASYNC": "y"}, ranks),
        Contender("ob1", [*ob1, program], plain, ranks),
        Contender("ucx", [*launch, *UCX, program], plain, ranks),
        Contender("mpich", [*mpich(ranks), mpich_program], {}, ranks),
        Contender("by hand", [*ob1, program, "--by-hand"], plain, ranks),
        Contender("limit", [*ob1, program, "--limit"], plain, ranks),
    ]
    missing = {}
    if not weftrun.exists():
        missing["weft"] = missing["weft async"] = f"{weftrun} is missing: make install"
    if ranks != 2:
        missing["limit"] = "it is a loop of two processes"
    if not shutil.which("mpiexec.mpich"):
        missing["mpich"] = "MPICH is not installed"
    elif not mpich_program.exists():
        missing["mpich"] = "the benchmark is not built for MPICH"
    present = [c for c in every if c.name in wanted and c.name not in missing]
    return present, {name: why for name, why in missing.items() if name in wanted}


PROGRAMS = ("shapes", "overlap_times")


def build_for_mpich(root, build, name="shapes"):
    """MPICH needs a program of its own; made here because the project does not depend on MPICH."""
    compiler = shutil.which("mpicxx.mpich")
    target = build / "benchmarks" / f"{name}.mpich"
    sources = sorted(source for source in (root / "benchmarks").glob("*.cpp")
                     if source.stem == name or source.stem not in PROGRAMS)
    newest = max(p.stat().st_mtime for p in (root / "benchmarks").glob("*.[ch]pp"))
    if not compiler or (target.exists() and target.stat().st_mtime > newest):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([compiler, "-std=c++20", "-O3", f"-I{root}", "-DMPICH_SKIP_MPICXX",
                    *map(str, sources), "-o", str(target)], check=True)
