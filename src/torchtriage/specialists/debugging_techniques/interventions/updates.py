"""How weights are updated: rates, decay, momentum, clipping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.trial.experiment.job.interventions import Interventions


def learning_rate(now: Interventions, factor: float) -> None:
    """Multiplies each learning rate by FACTOR for as long as an update takes: schedules go on from their own."""
    _during_updates(now, "lr", lambda rate: rate * factor)


def weight_decay(now: Interventions, factor: float) -> None:
    """Multiplies each weight decay by FACTOR; refuses where there is none."""
    if not any(group.get("weight_decay") for group in _groups()):
        now.refuse("no optimizer decays weights")
    _during_updates(now, "weight_decay", lambda decay: decay * factor)


def clipping(now: Interventions, _value: float) -> None:
    """Leaves gradients as they are where the job clips their norm; refuses where torch's own function differs."""
    from torch.nn.utils import clip_grad

    if not hasattr(clip_grad, "_clip_grads_with_norm_"):
        now.refuse("this version of torch clips in one function, which the job may have under a name of its own")
    now.job.wrap(clip_grad, "_clip_grads_with_norm_", lambda _original: lambda *_args, **_kwargs: None)


def fused_optimizer(now: Interventions, _value: float) -> None:
    """Updates all weights in one kernel, where torch's optimizer can and does not yet."""
    from torch import optim

    kinds = (optim.Adam, optim.AdamW, optim.SGD, optim.Adagrad)
    found = [group for each in _optimizers() if isinstance(each, kinds) for group in each.param_groups]
    found = [group for group in found if "fused" in group and not group["fused"]]
    if not found:
        now.refuse("no optimizer is Adam, AdamW, SGD or Adagrad with kernels that are not fused yet")
    for group in found:
        group.update(fused=True, foreach=False)


def foreach(now: Interventions, _value: float) -> None:
    """Updates one parameter after the other: updates of all at once hold a copy of all of them for a moment."""
    found = [group for group in _groups() if "foreach" in group and not group.get("fused")]
    if not any(group["foreach"] is not False for group in found):
        now.refuse("no optimizer updates all parameters at once without a fused kernel")
    for group in found:
        group["foreach"] = False


def _groups() -> list[dict[str, Any]]:
    return [group for optimizer in _optimizers() for group in optimizer.param_groups]


def _optimizers() -> list[Any]:
    """Those of the process; no object is asked for its class, since those of lazy imports and mocks may raise then."""
    import gc

    from torch.optim import Optimizer

    return [each for each in gc.get_objects() if issubclass(type(each), Optimizer)]


def _during_updates(now: Interventions, name: str, changed: Any) -> None:
    before: list[tuple[dict[str, Any], Any]] = []

    def stepping(optimizer: Any) -> None:
        for group in optimizer.param_groups:
            if name in group:
                before.append((group, group[name]))
                group[name] = changed(group[name])

    def stepped(_optimizer: Any) -> None:
        while before:
            group, value = before.pop()
            group[name] = value

    now.job.listen(stepping, stepped)
