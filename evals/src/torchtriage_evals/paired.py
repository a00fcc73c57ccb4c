"""The difference between two arms on the same scenarios, with an interval that knows of families.

The unit is the scenario: epochs are averaged before. Scenarios of one family (one bug in other words) are drawn
together. Percentiles of a bootstrap are too narrow for few families, so the draws are widened by sqrt(G/(G-1)) and by
the ratio of Student's to the normal quantile with G-1 degrees of freedom (A. C. Cameron, D. L. Miller, A
Practitioner's Guide to Cluster-Robust Inference, 2015, section VI); tests/test_paired.py simulates what that covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

FEWEST = 10  # families: below, no interval is given
DRAWS = 4_000
NORMAL = 1.959964  # the normal distribution's 97.5 % quantile


class Interval(Struct, frozen=True):
    """95 % of the truth, or nothing where there are too few families."""

    low: float
    high: float


class Difference(Struct, frozen=True):
    """After less before, over the scenarios that both have. worse: those that lost, the most first."""

    mean: float
    interval: Interval | None
    scenarios: int
    families: int
    wins: int
    losses: int
    worse: tuple[tuple[str, float], ...]


def difference(
    before: Mapping[str, float], after: Mapping[str, float], family: Mapping[str, str], seed: int = 0
) -> Difference | None:
    """AFTER less BEFORE, scores by scenario; None where they share none."""
    shared = sorted(set(before) & set(after))
    if not shared:
        return None
    gains = {name: after[name] - before[name] for name in shared}
    families = sorted({family[name] for name in shared})
    place = {name: index for index, name in enumerate(families)}
    sums, counts = np.zeros(len(families)), np.zeros(len(families))
    for name, gain in gains.items():
        sums[place[family[name]]] += gain
        counts[place[family[name]]] += 1
    return Difference(
        mean=float(sums.sum() / counts.sum()),
        interval=interval(sums, counts, seed),
        scenarios=len(shared),
        families=len(families),
        wins=sum(gain > 0 for gain in gains.values()),
        losses=sum(gain < 0 for gain in gains.values()),
        worse=tuple(sorted(((n, round(g, 6)) for n, g in gains.items() if g < 0), key=lambda one: (one[1], one[0]))),
    )


def interval(
    sums: NDArray[np.float64], counts: NDArray[np.float64], seed: int = 0, draws: int = DRAWS
) -> Interval | None:
    """The interval of the mean, from each family's sum of differences and count of scenarios."""
    families = len(sums)
    if families < FEWEST:
        return None
    drawn = np.random.default_rng(seed).integers(0, families, (draws, families))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    mean = sums.sum() / counts.sum()
    wider = sqrt(families / (families - 1)) * student(families - 1) / NORMAL
    low, high = mean + wider * (np.percentile(means, [2.5, 97.5]) - mean)
    return Interval(float(low), float(high))


def student(degrees: int) -> float:
    """Student's 97.5 % quantile by Cornish and Fisher's expansion: within 0.001 from 9 degrees of freedom on."""
    z = NORMAL
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / float(degrees) ** power for power, term in enumerate(terms, 1))


def wilson(hits: int, of: int) -> Interval | None:
    """The interval of a share, by Wilson's score."""
    if not of:
        return None
    share, z = hits / of, NORMAL
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return Interval(max(0.0, middle - half), min(1.0, middle + half))
