"""The table, the floors and the summing-up."""

import statistics

from .statistics import bootstrap_interval, geometric_mean, speedups

STOCK = ("ob1", "ucx", "mpich")
FIRST_CONTIGUOUS = 101


def microseconds(seconds):
    us = seconds * 1e6
    return f"{us:.3f}" if us < 10 else f"{us:.2f}" if us < 100 else f"{us:.1f}"


class Report:
    def __init__(self, shapes, rounds, names, ranks=2):
        self.ranks = ranks
        self.shapes = shapes  # number -> row of the program
        self.rounds = rounds  # list of {contender: {shape: seconds}}
        self.names = names
        self.stock = [name for name in STOCK if name in names]
        self.compares = "weft" in names and bool(self.stock)

    def median(self, name, shape):
        return statistics.median(r[name][shape] for r in self.rounds)

    def speedup(self, shape, others):
        """Median speedup of weft over the fastest of the others."""
        return statistics.median(speedups(self.rounds, shape, "weft", others))

    def against(self, shape, others):
        """Median and interval of the speedup of weft over the fastest of the others."""
        values = speedups(self.rounds, shape, "weft", others)
        return (statistics.median(values), *bootstrap_interval(values))

    def table(self):
        width = max(len(row["name"]) for row in self.shapes.values())
        head = f"{'no.':>4} {'shape, one way in us':<{width}} {'bytes':>8}"
        head += "".join(f" {name:>9}" for name in self.names)
        if self.compares:
            head += f"  {'best stock / weft':<22}"
            head += "  by hand / weft" if "by hand" in self.names else ""
            head += "  limit / weft" if "limit" in self.names else ""
        lines = [head]
        for number, row in self.shapes.items():
            line = f"{number:>4} {row['name']:<{width}} {row['bytes']:>8}"
            line += "".join(f" {microseconds(self.median(n, number)):>9}" for n in self.names)
            if self.compares:
                median, low, high = self.against(number, self.stock)
                line += f"  {median:6.2f} ({low:5.2f} to {high:5.2f})"
                if "by hand" in self.names:
                    line += f"  {self.speedup(number, ['by hand']):14.2f}"
                if "limit" in self.names:
                    line += f"  {self.speedup(number, ['limit']):12.2f}"
            lines.append(line)
        return "\n".join(lines)

    def goals(self):
        """What weft is to reach (with the interval's lower end, less 3 %); a line per goal."""
        if not self.compares:
            return []
        lines = []

        def goal(what, values, least):
            median, low, high = values
            met = "met" if low >= least * 0.97 else "MISSED"
            lines.append(f"{met}: {what}: {median:.2f} ({low:.2f} to {high:.2f}), "
                         f"at least {least:g}")

        def worst(what, numbers, others, least):
            numbers = [n for n in numbers if n in self.shapes]
            if numbers and all(o in self.names for o in others):
                n = min(numbers, key=lambda n: self.speedup(n, others))
                goal(f"{what}, worst: {self.shapes[n]['name']}", self.against(n, others), least)

        derived = [n for n in self.shapes if n < FIRST_CONTIGUOUS]
        flat = [n for n in self.shapes if n >= FIRST_CONTIGUOUS]
        if self.ranks > 2:
            worst(f"{self.ranks} ranks, times the best stock", list(self.shapes), self.stock, 1)
            return lines
        if derived:
            means = [geometric_mean(speedups([r], n, "weft", self.stock)[0] for n in derived)
                     for r in self.rounds]
            goal("shapes, times the best stock, geometric mean",
                 (statistics.median(means), *bootstrap_interval(means)), 2)
        worst("shapes, times the best stock", derived, self.stock, 1)
        worst("shapes, times packing by hand", derived, ["by hand"], 1)
        worst("shapes of 8 KiB and more, share of the limit's speed",
              [n for n in derived if self.shapes[n]["bytes"] >= 8192], ["limit"], 0.8)
        worst("contiguous, times the best stock", flat, self.stock, 1)
        worst("contiguous 256 KiB and more, times the best stock",
              [n for n in flat if self.shapes[n]["bytes"] >= 262144], self.stock, 3.3)
        worst("contiguous 8 B, times the best stock", [FIRST_CONTIGUOUS], self.stock, 1.25)
        return lines

    def sum(self):
        if not self.compares:
            return f"{len(self.shapes)} shapes, {len(self.rounds)} rounds, nothing compared"
        ratios = {n: self.speedup(n, self.stock) for n in self.shapes}
        derived = [r for n, r in ratios.items() if n < FIRST_CONTIGUOUS]
        flat = [r for n, r in ratios.items() if n >= FIRST_CONTIGUOUS]
        worst = min(ratios, key=ratios.get)
        parts = []
        if derived:
            parts.append(f"{len(derived)} shapes {geometric_mean(derived):.2f} times as fast")
        if flat:
            parts.append(f"{len(flat)} contiguous sizes {geometric_mean(flat):.2f} times")
        text = (f"weft against the best of {', '.join(self.stock)} (geometric mean, "
                f"{len(self.rounds)} rounds): {', '.join(parts)}; worst: "
                f"{self.shapes[worst]['name']} {ratios[worst]:.2f}")
        if "limit" in self.names:
            shares = {n: self.speedup(n, ["limit"]) for n in self.shapes}
            far = min(shares, key=shares.get)
            text += (f"; against the limit: {self.shapes[far]['name']} "
                     f"at {1 / shares[far]:.2f} times its time")
        return text
