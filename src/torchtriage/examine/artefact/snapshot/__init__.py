"""CUDA memory snapshots: what the peak consists of, what grows, what lies free, and the allocation that failed."""

from torchtriage.examine.artefact.snapshot.snapshots import (
    OTHERS,
    Device,
    Failure,
    Group,
    Kept,
    Memory,
    Snapshot,
    as_run,
    measurements,
    read,
)

__all__ = ["OTHERS", "Device", "Failure", "Group", "Kept", "Memory", "Snapshot", "as_run", "measurements", "read"]
