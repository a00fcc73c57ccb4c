"""Averages of weights: modules that no optimizer trains and that move all the same, tensors that are called so."""

from __future__ import annotations

import re

from torchtriage.examine.trial.resume.trial import Part

_AVERAGED = re.compile(r"(?<![a-z])(?:ema|swa|shadow|averaged?|polyak|teacher|momentum_encoder)(?![a-z])", re.I)
_MEASURED = re.compile(r"loss|acc|metric|time|grad_norm|speed|score", re.I)


def is_average(part: Part) -> bool:
    """A loss that is smoothed is an average of another kind."""
    named = bool(_AVERAGED.search(part.holder.replace("_", " "))) and not _MEASURED.search(part.holder)
    return named or (part.kind == "module" and part.moves)
