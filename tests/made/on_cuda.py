"""What the proofs of the pages have come to on a CUDA device, as tests/simulation/on_cuda.json keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any


def summary(outcomes: Mapping[str, str], about: Mapping[str, str]) -> dict[str, Any]:
    """ABOUT the device, with the slugs that have passed there and those that have failed. OUTCOMES: of tests, by id."""
    by_slug: dict[str, set[str]] = {}
    for test, outcome in outcomes.items():
        path = PurePosixPath(test.partition("::")[0])
        if path.parent.name == "proofs":
            by_slug.setdefault(path.stem.removeprefix("test_").replace("_", "-"), set()).add(outcome)
    failed = sorted(slug for slug, found in by_slug.items() if "failed" in found)
    passed = sorted(slug for slug, found in by_slug.items() if "passed" in found and slug not in failed)
    return {**about, "passed": passed, "failed": failed}


def describe_device() -> dict[str, str]:
    """The first CUDA device and the torch that drives it."""
    import torch

    return {"device": torch.cuda.get_device_name(0), "torch": torch.__version__, "cuda": str(torch.version.cuda)}
