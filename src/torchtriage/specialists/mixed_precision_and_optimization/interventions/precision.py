"""Autocast, taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.trial.experiment.job.interventions import Interventions


def autocast(now: Interventions, _value: float) -> None:
    """Computes in float32 where the job asks for autocast."""
    import torch

    def disabled(original: Any) -> Any:
        def __init__(region: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            original(region, *args, **kwargs)
            region._enabled = False

        return __init__

    now.job.wrap(torch.amp.autocast_mode.autocast, "__init__", disabled)
