"""Test Anything Protocol, version 12: one line per case."""

import re
import sys
import time

from .jobs import Failure


class Skip(Exception):
    """Why a case cannot be run here."""


class Case:
    def __init__(self, name, function):
        self.name = name
        self.function = function


def run_all(cases, lines_shown=40):
    """Prints the plan and a line per case; what failed goes to standard error. True if nothing did."""
    print(f"1..{len(cases)}", flush=True)
    good = True
    for number, case in enumerate(cases, 1):
        began = time.monotonic()
        try:
            note = case.function()
            verdict, directive = "ok", f" ({note})" if note else ""
        except Skip as skip:
            verdict, directive = "ok", f" # SKIP {skip}"
        except Failure as failure:
            good = False
            verdict, directive = "not ok", f" # {failure}"
            lines = failure.output.rstrip().splitlines()
            if len(lines) > lines_shown:
                lines = lines[:5] + ["..."] + lines[-lines_shown:]
            for line in lines:
                print(f"# {line[:2000]}", file=sys.stderr)
        seconds = time.monotonic() - began
        name = re.sub(r"#", "no.", case.name)
        print(f"{verdict} {number} - {name}{directive} [{seconds:.1f} s]"
              if not directive.startswith(" # SKIP") else f"{verdict} {number} - {name}{directive}",
              flush=True)
    return good
