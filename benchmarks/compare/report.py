"""The table, the floors and the summing-up."""

import statistics

from .statistics import bootstrap_interval, geometric_mean, speedups

STOCK = ("ob1", "ucx")
FIRST_CONTIGUOUS = 101


def microseconds(seconds):
    us = seconds * 1e6
    return f"{us:.3f}" if us < 10 else f"{us:.2f}" if us < 100 else f"{us:.1f}"


class Report:
    def __init__(self, shapes, rounds, names):
        self.shapes = shapes  # number -> row of the program
        self.rounds = rounds  # list of {contender: {shape: seconds}}
        self.names = names
        self.stock = [name for name in STOCK if name in names]
        self.compares = "weft" in names and bool(self.stock)

    def median(self, name, shape):
        return statistics.median(r[name][shape] for r in self.rounds)

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
        lines = [head]
        for number, row in self.shapes.items():
            line = f"{number:>4} {row['name']:<{width}} {row['bytes']:>8}"
            line += "".join(f" {microseconds(self.median(n, number)):>9}" for n in self.names)
            if self.compares:
                median, low, high = self.against(number, self.stock)
                line += f"  {median:6.2f} ({low:5.2f} to {high:5.2f})"
                if "by hand" in self.names:
                    line += f"  {self.against(number, ['by hand'])[0]:6.2f}"
            lines.append(line)
        return "\n".join(lines)

    def floors(self):
        """The least that the main job asks for; a line per floor."""
        if not self.compares:
            return []
        lines = []

        def floor(what, shape, others, least):
            if shape not in self.shapes or not all(o in self.names for o in others):
                return
            median, low, high = self.against(shape, others)
            met = "met" if low >= least * 0.97 else "MISSED"
            lines.append(f"{met}: {what}: {median:.2f} ({low:.2f} to {high:.2f}), "
                         f"at least {least:g}")

        floor("contiguous 8 B, times the speed of ucx", 101, ["ucx"], 1)
        floor("contiguous 1 MiB, times the best stock", 107, self.stock, 3)
        floor("column of 1024 doubles, times the best stock", 2, self.stock, 2)
        if "ucx" in self.names:
            worst = min(self.shapes, key=lambda n: self.against(n, ["ucx"])[0])
            floor(f"the worst shape ({self.shapes[worst]['name']}), times the speed of ucx", worst,
                  ["ucx"], 0.9)
        return lines

    def sum(self):
        if not self.compares:
            return f"{len(self.shapes)} shapes, {len(self.rounds)} rounds, nothing compared"
        ratios = {n: self.against(n, self.stock)[0] for n in self.shapes}
        derived = [r for n, r in ratios.items() if n < FIRST_CONTIGUOUS]
        flat = [r for n, r in ratios.items() if n >= FIRST_CONTIGUOUS]
        worst = min(ratios, key=ratios.get)
        parts = []
        if derived:
            parts.append(f"{len(derived)} shapes {geometric_mean(derived):.2f} times as fast")
        if flat:
            parts.append(f"{len(flat)} contiguous sizes {geometric_mean(flat):.2f} times")
        return (f"weft against the best of stock {' and '.join(self.stock)} (geometric mean, "
                f"{len(self.rounds)} rounds): {', '.join(parts)}; worst: "
                f"{self.shapes[worst]['name']} {ratios[worst]:.2f}")
