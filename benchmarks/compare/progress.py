"""What a user sees while measurements run."""

import sys


def progress(text=""):
    """One line that replaces itself on a terminal; without text it is taken away."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
