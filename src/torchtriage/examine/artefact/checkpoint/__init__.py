"""Checkpoints: what is in them, whether a training can go on from it, and whether it is what was written."""

from torchtriage.examine.artefact.checkpoint.figures import measurements
from torchtriage.examine.artefact.checkpoint.read import Checkpoint, Checkpoints, read

__all__ = ["Checkpoint", "Checkpoints", "measurements", "read"]
