"""What the arguments of a function are tried with: shapes, and values for parameters of a known name."""

from __future__ import annotations

from typing import Any

Shapes = tuple[tuple[int, ...], ...]


def _read(text: str) -> tuple[Shapes, ...]:
    """Schemes divided by bars: for each tensor its sizes, () for a scalar."""
    rows = (row.split() for row in text.split("|"))
    return tuple(tuple(tuple(map(int, each.split("x"))) if each != "()" else () for each in row) for row in rows)


# No two sizes of one tensor are alike in the first ones: what confuses dimensions must not happen to fit.
SCHEMES = {
    1: _read("3x4 | 5 | 2x3x4 | 2x3x4x5 | () | 3x3 | 2x4x6 | 2x8x4x4 | 2x3x4x5x6"),
    2: _read(
        "3x4 3x4 | 3x4 4x5 | 3x4 5x4 | 3x4 4 | 3x4 () | 3x4 1 | 5 5 | 3x4 3 | 2x3x4 2x3x4 | 2x3x4 2x4x5 | "
        "2x3x5x6 4x3x3x2 | 2x3x7 4x3x3 | 2x3x4x5 3 | 2x3x4x5 2x3x4x5 | 5 3 | 6x4 5 | () () | 3x3 3 | 3x4 3x1 "
        "| 2x3x4 3 | 2x3x4 4"
    ),
    3: _read(
        "3x4 5x4 5 | 3x4 4x5 5 | 3x4 4 4 | 3x4 3x4 3x4 | 3x4 4x5 3x5 | 2x3x4 2x3x4 2x3x4 | 2x3x4 2x5x4 2x5x6 "
        "| 2x3x5x6 4x3x3x2 4 | 2x3x4x5 3 3 | 3x4 () () | 3x4 1 1 | 5 5 5 | 3x5 3x4 4x5 | 2x3x7 4x3x3 4 | 3x4 "
        "3 3 | 3x4 4x5 5x6 | 5 5x4 4x5 | () () ()"
    ),
    4: _read("3x4 3x4 3x4 3x4 | 3x4 4 4 4 | 2x3x4x5 3 3 3 | 3x4 5x4 5 5 | 3x4 3x5 5x4 5 | 5 5 5 5 | 3x4 () () ()"),
    5: _read("3x4 4 4 4 4 | 2x3x4x5 3 3 3 3 | 3x4 3x4 3x4 3x4 3x4 | 5 5 5 5 5"),
}
"""By the number of tensors."""
SCALARS: dict[str, tuple[Any, ...]] = {
    "dim": (-1, 1, 0), "axis": (-1, 1, 0), "eps": (1e-05,), "epsilon": (1e-05,), "stride": (1,), "padding": (1, 0),
    "dilation": (1,), "groups": (1,), "kernel_size": (2,), "training": (True,), "train": (True,), "inplace":
    (False,), "reduction": ("mean",), "num_classes": (4,), "n": (2,), "k": (2,), "num_groups": (1,), "p": (0.5, 2),
    "keepdim": (False,), "steps": (3,), "iterations": (3,), "bits": (4,), "num_bits": (4,), "levels": (8,),
    "output_size": (2,), "scale_factor": (2,), "ignore_index": (-100,), "blank": (0,), "normalized_shape": ((4,),),
    "shape": ((4, 3),), "size": (3, (3, 4)), "power": (3.0,), "exponent": (3.0,), "min": (-0.6,), "max": (0.7,),
    "lo": (-0.6,), "hi": (0.7,), "low": (-0.6,), "high": (0.7,), "min_val": (-0.6,), "max_val": (0.7,), "lower":
    (-0.6,), "upper": (0.7,), "temperature": (0.7,), "tau": (0.7,), "threshold": (0.3,), "margin": (0.3,), "delta":
    (0.4,),
}  # fmt: skip
"""By the parameter's name."""
SCALARLIKE = (
    "alpha", "beta", "gamma", "lam", "lambd", "lambda_", "factor", "slope", "negative_slope", "scale", "rate",
    "coef", "coeff", "sigma", "smoothing", "label_smoothing", "clip", "clip_value", "max_norm", "limit", "strength",
    "value", "constant", "c",
)  # fmt: skip
NUMBERLIKE = (
    "index", "indices", "idx", "ids", "labels", "label", "target", "targets", "lengths", "segment", "batch_index",
    "y_true",
)  # fmt: skip
MASKLIKE = (
    "mask", "attn_mask", "padding_mask", "keep",
)  # fmt: skip
ALLOWED: dict[type, tuple[Any, ...]] = {int: (2, 1, 0), float: (0.7,), bool: (True, False), str: ("mean",)}
"""By the parameter's annotation."""
