"""Medians and their intervals."""

import math
import random
import statistics


def bootstrap_interval(values, confidence=0.95, resamples=1000):
    """Of the median; the same for the same values."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(values, k=len(values)))
                     for _ in range(resamples))
    tail = int(resamples * (1 - confidence) / 2)
    return medians[tail], medians[-tail - 1]


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))


def speedups(rounds, shape, ours, others):
    """Per round: how many times faster `ours` is than the fastest of the others."""
    return [min(r[other][shape] for other in others) / r[ours][shape] for r in rounds]


def slope(points):
    """Least squares of a line through (x, y), each point weighed by 1 / y^2, so that relative errors
    count: the slope, and the largest relative distance of a point from the line."""
    weights = [1 / y ** 2 for _, y in points]
    total = sum(weights)
    mean_x = sum(w * x for w, (x, _) in zip(weights, points)) / total
    mean_y = sum(w * y for w, (_, y) in zip(weights, points)) / total
    rise = (sum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, points))
            / sum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weights, points)))
    return rise, max(abs(mean_y + rise * (x - mean_x) - y) / y for x, y in points)
