"""How a figure changes with the step number."""

from __future__ import annotations

from typing import Any

import numpy as np

POINTS = 240  # steps that are compared pairwise
CONFIDENCE = 1.96  # standard deviations of a normal distribution that hold 95 %


def slope(steps: Any, values: Any) -> tuple[float, tuple[float, float]]:
    """Theil and Sen's slope per step with its 95 % interval: one jump does not move it. STEPS rise."""
    if len(steps) > POINTS:
        chosen = np.linspace(0, len(steps) - 1, POINTS).astype(int)
        steps, values = steps[chosen], values[chosen]
    first, second = np.triu_indices(len(steps), 1)
    slopes = np.sort((values[second] - values[first]) / (steps[second] - steps[first]))
    size = len(steps)
    half = int(CONFIDENCE * np.sqrt(size * (size - 1) * (2 * size + 5) / 18) / 2) + 1
    middle = len(slopes) // 2
    low, high = slopes[max(0, middle - half)], slopes[min(len(slopes) - 1, middle + half)]
    return float(np.median(slopes)), (float(low), float(high))
