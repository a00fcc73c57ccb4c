"""What a record says about formats and sizes that a GPU computes slowly."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Setup
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.mixed_precision_and_optimization.probes.events import Products

NATIVE_BFLOAT16 = 8  # compute capability from which bfloat16 and TF32 have units of their own
SHORT = ("float16", "bfloat16")


@detector("run/bf16-emulated")
def bf16_emulated(record: RankRecord) -> Iterator[Sighting]:
    """bfloat16 is used on a GPU that does not compute it natively."""
    product, short = record.first(Products), _format(record)
    if product and short == "bfloat16" and product.capability[0] < NATIVE_BFLOAT16:
        major, minor = product.capability
        fact = f"bfloat16 on a GPU of compute capability {major}.{minor}, which emulates it: native from 8.0"
        yield Sighting(Place(rank=record.rank), fact)


@detector("run/tf32-off")
def tf32_off(record: RankRecord) -> Iterator[Sighting]:
    """float32 matrix products run at full precision on a GPU with TF32."""
    product = record.first(Products)
    if product is None or _format(record) != "float32" or product.capability[0] < NATIVE_BFLOAT16:
        return
    if product.matmul == "highest":
        fact = (
            f"float32 products of {product.layers} linear layers ({product.weights:,} weights) run at precision "
            '"highest", though the GPU has TF32'
        )
        yield Sighting(Place(rank=record.rank), fact)


@detector("run/matmul-misaligned")
def matmul_misaligned(record: RankRecord) -> Iterator[Sighting]:
    """Linear layers whose sizes are no whole units of 16 bytes, as a share of all their weights."""
    product, short = record.first(Products), _format(record)
    if product is None or not (short in SHORT or product.matmul != "highest"):
        return
    odd = product.misaligned["2" if short in SHORT else "4"]
    if not odd["layers"]:
        return
    first = odd["named"][0]
    named = ", ".join(f"{name} ({wide} to {out})" for name, wide, out in odd["named"])
    share = odd["weights"] / product.weights
    fact = (
        f"{odd['layers']} of {product.layers} linear layers, {share:.0%} of their weights, have sizes that are no "
        f"multiple of {8 if short in SHORT else 4} in {short}: {named}"
    )
    yield Sighting(Place(rank=record.rank, module=first[0]), fact, share, "of the weights")


def _format(record: RankRecord) -> str | None:
    """The format that matrix products run in: autocast's, or that of the parameters."""
    setup, product = record.first(Setup), record.first(Products)
    autocast = (setup.precision or {}).get("autocast") if setup else None
    return autocast or (product.dtype if product else None)
