"""In which format autocast runs each operation on a device: a table, made by running them.

Prints for each operation the type of its result inside autocast, when its input is what a linear layer gives there.
Operations whose result is float32 are computed in float32. The lists of CUDA and CPU differ: ask the device in use.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional

OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "linear, matmul": lambda x: x @ x.T,
    "scaled_dot_product_attention": lambda x: functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "relu, gelu": functional.gelu,
    "x + x": lambda x: x + x,
    "x + float32": lambda x: x + x.float(),
    "mean": torch.mean,
    "sum": torch.sum,
    "norm": torch.linalg.vector_norm,
    "exp": torch.exp,
    "log": lambda x: x.abs().log(),
    "pow": lambda x: x.pow(2),
    "softmax": lambda x: x.softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
    "F.normalize": functional.normalize,
    "mse_loss": lambda x: functional.mse_loss(x, x),
    "cross_entropy": lambda x: functional.cross_entropy(x, torch.arange(len(x), device=x.device)),
}


def types(device: str, dtype: Any) -> Iterator[tuple[str, str]]:
    """Each operation with the type of its result on DEVICE under autocast to DTYPE."""
    with torch.autocast(device, dtype=dtype), torch.no_grad():
        inputs = functional.linear(torch.randn(8, 8, device=device), torch.randn(8, 8, device=device))
        for name, operation in OPERATIONS.items():
            yield name, str(operation(inputs).dtype).removeprefix("torch.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--format", choices=("float16", "bfloat16"), default="float16")
    given = parser.parse_args()
    print(f"autocast({given.device!r}, {given.format})")
    for name, kind in types(given.device, getattr(torch, given.format)):
        print(f"{name:30} {kind}")


if __name__ == "__main__":
    main()
