"""Curves of a training: TensorBoard event files, Lightning's metrics.csv, transformers' trainer_state.json."""

from torchtriage.examine.artefact.curves.drawn import Curve as Curve
from torchtriage.examine.artefact.curves.drawn import Curves as Curves
from torchtriage.examine.artefact.curves.drawn import measurements as measurements
from torchtriage.examine.artefact.curves.read import read as read
