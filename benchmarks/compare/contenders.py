"""Who is compared: each a command that prints the program's JSON lines."""

import json
import os
import shutil
import subprocess

UCX = ["--mca", "pml", "ucx", "--mca", "opal_common_ucx_tls", "any",
       "--mca", "opal_common_ucx_devices", "any"]
# One rank per core, and waiting ranks keep their core: no contender is told otherwise by accident.
OPEN_MPI = ["mpirun.openmpi", "-np", "2", "--oversubscribe", "--bind-to", "core", "--map-by", "core"]
MPICH = ["mpiexec.mpich", "-np", "2", "-bind-to", "core"]


def environment(**more):
    """Of a run: as root too, and with what is asked for."""
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)


class Contender:
    def __init__(self, name, command, env):
        self.name = name
        self.command = [str(word) for word in command]
        self.env = env

    def run(self, arguments, timeout):
        """Seconds by shape number, and the shapes themselves."""
        env = environment(OMPI_MCA_mpi_yield_when_idle="0", **self.env)
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


def all_contenders(build, install, wanted, name="shapes"):
    """Those that can run the program `name` here, of the wanted; and why the others cannot."""
    program = build / "benchmarks" / name
    mpich_program = build / "benchmarks" / f"{name}.mpich"
    weftrun = install / "bin/weftrun"
    plain = WITHOUT_WEFT
    every = [
        Contender("weft", [weftrun, *OPEN_MPI, program], {}),
        Contender("weft async", [weftrun, *OPEN_MPI, program], {"UCX_WEFT_ASYNC": "y"}),
        Contender("ob1", [*OPEN_MPI, "--mca", "pml", "ob1", program], plain),
        Contender("ucx", [*OPEN_MPI, *UCX, program], plain),
        Contender("mpich", [*MPICH, mpich_program], {}),
        Contender("by hand", [*OPEN_MPI, "--mca", "pml", "ob1", program, "--by-hand"], plain),
        Contender("limit", [*OPEN_MPI, "--mca", "pml", "ob1", program, "--limit"], plain),
    ]
    missing = {}
    if not weftrun.exists():
        missing["weft"] = missing["weft async"] = f"{weftrun} is missing: make install"
    if not shutil.which(MPICH[0]):
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
