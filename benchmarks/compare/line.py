"""How long a signal through a cache line takes, which says where the two cores are just now.

A hypervisor moves its processors: the two that the guest has share a cache in one minute and not in
the next, and everything that ranks exchange costs up to three times as much."""

import time

from .contenders import all_contenders
from .progress import progress
from .report import FIRST_CONTIGUOUS

PAUSE = 2  # seconds


class Line:
    """The line, and between which bounds (microseconds) a measurement is wanted."""

    def __init__(self, build, install, below=None, above=None):
        self.below = below
        self.above = above
        contenders, _ = all_contenders(build, install, ["limit"])
        self.loop = contenders[0]

    def microseconds(self):
        """8 bytes one way between two processes that share memory, without MPI."""
        rows = self.loop.run(["--only", str(FIRST_CONTIGUOUS), "--milliseconds", "2"], timeout=60)
        return rows[0]["seconds"] * 1e6

    def fits(self):
        if self.below is None and self.above is None:
            return True
        now = self.microseconds()
        return ((self.below is None or now < self.below)
                and (self.above is None or now > self.above))

    def during(self, what, measure):
        """What `measure` returns, of a time all through which the line was as is wanted."""
        while True:
            while not self.fits():
                progress(f"{what}: waits for the line")
                time.sleep(PAUSE)
            progress(what)
            result = measure()
            if self.fits():
                return result
