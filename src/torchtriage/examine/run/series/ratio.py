"""The ratio of two sums over the steps of a run, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def ratio(parts: Sequence[float], wholes: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The ratio of two sums with its 95 % interval from a block bootstrap (2,000 resamples, fixed seed).

    Blocks of about n^(1/3) neighbouring steps: what delays one step delays the next (workers that prefetch make waits
    come in bursts), and resampling single steps would make the interval too narrow.
    """
    pairs = np.array([parts, wholes], dtype=float)
    size = max(1, round(pairs.shape[1] ** (1 / 3)))
    count = -(-pairs.shape[1] // size)
    starts = np.random.default_rng(0).integers(0, pairs.shape[1], (2000, count, 1))
    sums = pairs[:, (starts + np.arange(size)) % pairs.shape[1]].sum(axis=(2, 3))
    low, high = np.percentile(sums[0] / sums[1], (2.5, 97.5)).tolist()
    share = float(pairs[0].sum() / pairs[1].sum())
    return share, (min(low, share), max(high, share))
