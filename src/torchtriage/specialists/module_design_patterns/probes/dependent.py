"""Which parts of a model compute something else in training mode than in evaluation mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

DROPS, TRACKS = "dropout", "batch norm"
_PATHS = frozenset({"DropPath", "StochasticDepth", "DropBlock2d", "VariationalDropout", "LockedDropout"})


class Parts:
    """Of one root module: how many of its parts that depend on the mode are in each, and their names by kind."""

    def __init__(self, job: Job, root: Any) -> None:
        self.training: dict[str, list[str]] = {}
        self.evaluating: dict[str, list[str]] = {}  # only those that belong to something trainable
        self.momentum = True  # False: every statistic is a plain average, as for a pass that estimates it anew
        self.fresh = True  # the statistics are those of a new layer
        inner = dict(root.named_modules())
        for name, part in inner.items():
            kind = _kind(job, part)
            if kind is None:
                continue
            shown = name or type(part).__name__
            if part.training:
                self.training.setdefault(kind, []).append(shown)
                self.momentum = self.momentum and getattr(part, "momentum", 0.1) is not None
            elif _trainable(part, inner.get(name.rpartition(".")[0], part)):
                self.evaluating.setdefault(kind, []).append(shown)
                self.fresh = self.fresh and _fresh(part)

    @staticmethod
    def count(parts: dict[str, list[str]]) -> tuple[dict[str, int], list[str]]:
        """Counts by kind, and the first few names."""
        names = [name for each in parts.values() for name in each]
        return {kind: len(each) for kind, each in parts.items()}, names[:3]


def _kind(job: Job, part: Any) -> str | None:
    import torch
    from torch.nn.modules.batchnorm import _NormBase
    from torch.nn.modules.dropout import _DropoutNd

    rate = 0.0
    if isinstance(part, _DropoutNd):
        rate = part.p
    elif isinstance(part, torch.nn.MultiheadAttention):
        rate = part.dropout
    elif isinstance(part, torch.nn.RNNBase):
        rate = part.dropout if part.num_layers > 1 else 0.0
    elif isinstance(part, _NormBase):
        return TRACKS if part.running_mean is not None else None
    elif type(part).__name__ in _PATHS:
        rate = next((value for value in map(vars(part).get, ("drop_prob", "p", "dropout")) if value is not None), 0.0)
    elif _asks(job, type(part)):
        return DROPS
    return DROPS if isinstance(rate, float) and rate > 0 else None


_asking: dict[type, bool] = {}


def _asks(job: Job, kind: type) -> bool:
    """Whether the user's own class hands its mode on to a dropout or a batch norm."""
    if kind not in _asking:
        names = [set(code.co_names) for code in job.written.codes(kind)]
        _asking[kind] = any(
            "training" in each and any("dropout" in name or "batch_norm" in name for name in each) for each in names
        )
    return _asking[kind]


def _trainable(part: Any, holder: Any) -> bool:
    own = list(part.parameters(recurse=False)) or list(holder.parameters())
    return any(each.requires_grad for each in own)


def _fresh(part: Any) -> bool:
    tracked = getattr(part, "num_batches_tracked", None)
    return tracked is None or tracked.device.type != "cpu" or not bool(tracked.item())
