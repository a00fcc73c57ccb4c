"""Which ranks are on one machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from torchtriage.examine.artefact.trace.rank import RankSummary

IN_A_ROW = 8
"""Ranks that most machines of a cluster have; launchers number them one machine after the other."""


def machines(ranks: Sequence[tuple[int, RankSummary]]) -> dict[int, str]:
    """For each rank what to call its machine: "host node3", as the traces tell it.

    Where none tells, "folder node3" where the traces lie in several folders, several in each; else IN_A_ROW ranks, and
    the name says so. Empty where there is nothing to go by.
    """
    told = {rank: each.host for rank, each in ranks}
    if any(told.values()):
        return {rank: f"host {host}" for rank, host in told.items() if host}
    folders = {rank: str(PurePosixPath(each.path.replace("\\", "/")).parent) for rank, each in ranks}
    if 1 < len(set(folders.values())) < len(folders):
        return {rank: f"folder {folder}" for rank, folder in folders.items()}
    if len(ranks) < 2 * IN_A_ROW or len(ranks) % IN_A_ROW:
        return {}
    return {rank: _guessed(rank - rank % IN_A_ROW) for rank in told}


def _guessed(first: int) -> str:
    return f"what may be one host (ranks {first} to {first + IN_A_ROW - 1}: the traces name none)"
