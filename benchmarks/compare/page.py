"""The report as a page to look at: the table, and plots by matplotlib."""

import html
import io
import sys

try:
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
except ImportError:
    pyplot = None

from .report import FIRST_CONTIGUOUS

COLOURS = {"weft": "#d1495b", "ob1": "#66a182", "ucx": "#2e4057", "mpich": "#8d96a3",
           "by hand": "#edae49", "limit": "#000000"}


MISSING = (f"matplotlib is not there for {sys.executable} "
           "(Debian's package python3-matplotlib is for /usr/bin/python3)")


def available():
    """Whether pictures can be drawn here."""
    return pyplot is not None


def svg(figure):
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight")
    pyplot.close(figure)
    return text.getvalue()[text.getvalue().index("<svg"):]


def times_of_shapes(report, numbers):
    """A row per shape, a mark per contender; time on a logarithmic axis."""
    figure, axes = pyplot.subplots(figsize=(9, 0.32 * len(numbers) + 1))
    rows = range(len(numbers), 0, -1)
    for name in report.names:
        values = [report.median(name, n) * 1e6 for n in numbers]
        mark = {"limit": "|", "weft": "D"}.get(name, "o")
        axes.plot(values, rows, mark, color=COLOURS.get(name), label=name,
                  markersize=11 if name == "limit" else 6)
    axes.set_xscale("log")
    axes.set_yticks(list(rows), [report.shapes[n]["name"] for n in numbers])
    axes.grid(True, which="both", axis="x", alpha=0.3)
    axes.grid(True, axis="y", alpha=0.15)
    axes.set_xlabel("one way, µs (left is better)")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(report.names), frameon=False)
    return svg(figure)


def bandwidth_of_sizes(report, numbers):
    figure, axes = pyplot.subplots(figsize=(9, 4))
    sizes = [report.shapes[n]["bytes"] for n in numbers]
    for name in report.names:
        rates = [s / report.median(name, n) / 1e9 for s, n in zip(sizes, numbers)]
        axes.plot(sizes, rates, "--" if name == "limit" else "-o", color=COLOURS.get(name),
                  label=name, markersize=4)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("contiguous message, bytes")
    axes.set_ylabel("GB/s one way")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(frameon=False)
    return svg(figure)


def cost_of_blocks(medians, titles):
    """A picture for each family of shapes: nanoseconds a block against the number of blocks."""
    figure, all_axes = pyplot.subplots(1, len(medians), figsize=(6 * len(medians), 4),
                                       squeeze=False, sharey=True)
    for axes, (family, contenders) in zip(all_axes[0], medians.items()):
        for name, sizes in contenders.items():
            axes.plot(list(sizes), [s * 1e9 / n for n, s in sizes.items()],
                      "--" if name == "limit" else "-o", color=COLOURS.get(name), label=name,
                      markersize=4)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_title(titles[family], fontsize=9)
        axes.set_xlabel("blocks")
        axes.set_ylabel("ns a block, one way (lower is better)")
        axes.grid(True, which="both", alpha=0.3)
        axes.legend(frameon=False)
    return svg(figure)


def page(report, machine):
    """The whole page as text."""
    numbers = sorted(report.shapes)
    shapes = [n for n in numbers if n < FIRST_CONTIGUOUS]
    sizes = [n for n in numbers if n >= FIRST_CONTIGUOUS]
    parts = ["<!doctype html><meta charset='utf-8'><title>weft: where it stands</title>",
             "<style>body{font:15px sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
             "pre{font-size:12px;overflow:auto}svg{max-width:100%;height:auto}</style>",
             "<h1>weft: where it stands</h1>",
             f"<p>{html.escape(report.sum())}</p><p>{html.escape(machine)}</p>"]
    if shapes:
        parts += ["<h2>Derived datatypes</h2>", times_of_shapes(report, shapes)]
    if sizes:
        parts += ["<h2>Contiguous messages</h2>", bandwidth_of_sizes(report, sizes)]
    parts.append(f"<h2>All figures</h2><pre>{html.escape(report.table())}</pre>")
    parts.append(f"<pre>{html.escape(chr(10).join(report.goals()))}</pre>")
    return "\n".join(parts)
