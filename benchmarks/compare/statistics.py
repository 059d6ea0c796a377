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
