"""A small single-shot detector."""

from .boxes import AnchorGrid, decode, encode, iou_matrix, nms
from .dataset import CLASSES, DetectionCollate, EpochSampler, SquaresDataset
from .evaluate import average_precision, evaluate
from .loss import DetectionLoss
from .model import SingleShotDetector

__all__ = [
    "CLASSES",
    "AnchorGrid",
    "DetectionCollate",
    "DetectionLoss",
    "EpochSampler",
    "SingleShotDetector",
    "SquaresDataset",
    "average_precision",
    "decode",
    "encode",
    "evaluate",
    "iou_matrix",
    "nms",
]
