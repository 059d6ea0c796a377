"""What the driver's cases have in common: where things are and how they are started."""

import tempfile
from pathlib import Path

from .jobs import Failure, Launcher


class Suite:
    def __init__(self, root, build, install, stock, long, seed, kills):
        self.root = Path(root)
        self.build = Path(build)
        self.long = long
        self.seed = seed
        self.kills = kills
        self.plain = Launcher()
        self.install = Path(install)
        self.launcher = self.plain if stock else Launcher(Path(install) / "bin" / "weftrun")
        self.scratch = Path(tempfile.mkdtemp(prefix="weft-tests-mpi-"))
        self.count_library = self.build / "tests/mpi/.libs/libpmpi_count.so"

    @property
    def stock(self):
        return self.launcher.stock

    def program(self, name):
        return self.build / name

    def weft_info(self):
        return self.install / "bin" / "weft-info"

    def counted(self, launcher, program, **how):
        """Runs with the independent count; the result and its numbers."""
        result = launcher.mpi(program, preload=self.count_library, **how)
        return result, result.counts() if not result.timed_out else {}


def expect_offloaded(counts, result, share=0.99):
    """At least this share of the independently counted bytes went through weft, both ways."""
    shares = []
    for way in ("send", "receive"):
        total, done = counts[way], counts[f"weft_{way}"]
        fallen = counts[f"weft_{way}_fallback"]
        # Inner messages of collectives are weft's, too, but not in the count: look at both numbers.
        if total == 0:
            raise Failure(f"the program has no non-contiguous {way}", result.described())
        if done < share * total or fallen > (1 - share) * total + counts["bsend"]:
            raise Failure(f"{way}: {done} of {total} bytes offloaded, {fallen} fell back",
                          result.described())
        shares.append(f"{way} {100 * min(1, done / total):.2f} %")
    return ", ".join(shares)


def expect_none_offloaded(counts, result):
    if counts["weft_send"] or counts["weft_receive"]:
        raise Failure(f"offloaded {counts['weft_send']} bytes of sends and "
                      f"{counts['weft_receive']} of receives", result.described())
