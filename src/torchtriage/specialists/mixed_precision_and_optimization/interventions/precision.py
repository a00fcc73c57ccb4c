"""Autocast, taken away or added."""

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


def bfloat16(now: Interventions, _value: float) -> None:
    """Computes what the root module does under autocast to bfloat16; refuses where the job has autocast of its own."""
    import torch

    root = now.call[0]
    kind = next((parameter.device.type for parameter in root.parameters()), "cpu")
    if torch.is_autocast_enabled(kind):
        now.refuse("it computes under autocast as it is")
    forward = root.forward

    def under_autocast(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast(kind, torch.bfloat16):
            answer = forward(*args, **kwargs)
        return _in_float32(answer)

    root.forward = under_autocast


def _in_float32(answer: Any) -> Any:
    """ANSWER with its bfloat16 in float32, as losses want it: a tensor, or tuples, lists and dicts of them."""
    import torch

    if isinstance(answer, torch.Tensor):
        return answer.float() if answer.dtype == torch.bfloat16 else answer
    if isinstance(answer, dict):
        for name, value in answer.items():
            answer[name] = _in_float32(value)
        return answer
    if type(answer) in (tuple, list):
        return type(answer)(map(_in_float32, answer))
    return answer
