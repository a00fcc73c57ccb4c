"""Runs a script, and writes down what it has computed: a digest of all modules' numbers and of the generators' states.

DIGEST=FILE python digest.py SCRIPT
"""

from __future__ import annotations

import gc
import hashlib
import os
import random
import runpy
import sys
from pathlib import Path

import torch


def digest() -> str:
    """Of the modules that are alive, by their tensors in the order of their names, and of three generators."""
    modules = [each for each in gc.get_objects() if isinstance(each, torch.nn.Module)]
    whole = hashlib.sha256("".join(sorted(map(_numbers, modules))).encode())
    whole.update(torch.get_rng_state().numpy().tobytes())
    whole.update(repr(random.getstate()).encode())
    return f"{whole.hexdigest()} of {len(modules)} modules"


def _numbers(module: torch.nn.Module) -> str:
    own = hashlib.sha256()
    for name, tensor in sorted({**dict(module.named_parameters()), **dict(module.named_buffers())}.items()):
        own.update(name.encode())
        own.update(repr((tensor.dtype, tensor.shape)).encode())
        own.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return own.hexdigest()


if __name__ == "__main__":
    script = sys.argv.pop(1)
    torch.manual_seed(0)
    random.seed(0)
    left = runpy.run_path(script, run_name="__main__")  # kept: what the script has made is alive
    with Path(os.environ["DIGEST"]).open("a", encoding="utf-8") as file:
        file.write(digest() + "\n")
