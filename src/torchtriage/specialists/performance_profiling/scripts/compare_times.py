"""Two variants against each other: warm-up, turns, the device waited for, median and quartiles.

Replace `before` and `after` by your own. Prints each median with its quartiles, the median ratio with a 95 % interval
(bootstrap over pairs of neighbouring turns), and whether that is enough to tell. Results are compared first.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from statistics import median, quantiles
from time import perf_counter

import torch

Work = Callable[[torch.Tensor], torch.Tensor]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60, help="turns of each variant (default 60)")
    parser.add_argument("--warmup", type=int, default=10, help="turns that are not counted (default 10)")
    parser.add_argument("--size", type=int, default=256, help="side of the square input (default 256)")
    return parser.parse_args()


def before(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([row * 2 + 1 for row in x])


def after(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1


def seconds(work: Work, x: torch.Tensor) -> float:
    """The time of one call, from an empty queue of the device to an empty queue."""
    if x.is_cuda:
        torch.cuda.synchronize()
    start = perf_counter()
    work(x)
    if x.is_cuda:
        torch.cuda.synchronize()
    return perf_counter() - start


def turns(rounds: int, warmup: int, x: torch.Tensor) -> list[tuple[float, float]]:
    """The times of both, in turns, so that what disturbs one disturbs the other."""
    pairs = [(seconds(before, x), seconds(after, x)) for _ in range(warmup + rounds)]
    return pairs[warmup:]


def interval(ratios: list[float]) -> tuple[float, float]:
    """The middle 95 % of the medians of samples drawn anew from RATIOS."""
    chance = random.Random(0)  # noqa: S311 - a bootstrap, nothing secret
    medians = sorted(median(chance.choices(ratios, k=len(ratios))) for _ in range(1000))
    return medians[25], medians[974]


def main() -> None:
    given = options()
    x = torch.randn(given.size, given.size, device="cuda" if torch.cuda.is_available() else "cpu")
    torch.testing.assert_close(before(x), after(x))
    pairs = turns(given.rounds, given.warmup, x)
    for name, times in zip(("before", "after"), zip(*pairs, strict=True), strict=True):
        low, middle, high = (each * 1e3 for each in quantiles(times, n=4))
        print(f"{name:7} {middle:8.3f} ms, half of the turns between {low:.3f} and {high:.3f}")
    low, high = interval([old / new for old, new in pairs])
    told = "faster" if low > 1 else "slower" if high < 1 else "too close to call: more rounds, a quieter machine"
    print(f"after is {low:.2f} to {high:.2f} times as fast as before: {told}")


if __name__ == "__main__":
    main()
