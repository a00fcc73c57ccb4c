"""What a training is given: one batch again and again, or inputs that belong to other targets."""

from __future__ import annotations

import weakref
from itertools import repeat, starmap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from torchtriage.examine.trial.experiment.job.interventions import Interventions

LOSSES = (
    "cross_entropy_loss", "nll_loss_nd", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
)  # fmt: skip
"""Functions of torch._C._nn by which those of torch.nn.functional compute, whatever the job calls these."""
LOSSES_OF_TORCH = ("binary_cross_entropy_with_logits", "kl_div", "ctc_loss", "poisson_nll_loss")


def one_batch(now: Interventions, _value: float) -> None:
    """Gives the batch at hand in each step.

    Of a job without a loader, as one that slices tensors in a loop, the model gets the inputs of the first step again,
    and torch's loss functions its targets.
    """
    if now.batch is None:
        _Held(now).place()
    else:
        _replay(now)


def batch_from_memory(now: Interventions, _value: float) -> None:
    """Gives the batch at hand in each step, so that none is loaded; refuses in a job without a loader."""
    if now.batch is None:
        now.refuse("its batches come from no DataLoader")
    _replay(now)


def _replay(now: Interventions) -> None:
    """Gives the batch at hand in the place of all others of its data, as many times as they are. From the next pass
    over the data on no worker is started for it.

    Other loaders load: an evaluation of one batch that comes again for ever would not end.
    """
    from torch.utils.data.dataloader import DataLoader, _BaseDataLoaderIter

    left: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
    load = _BaseDataLoaderIter.__next__

    def replay(iterator: Any) -> Any:
        if iterator._dataset is not now.loader.dataset:
            return load(iterator)
        left[iterator] = left.get(iterator, _batches(iterator)) - 1
        if left[iterator] < 0:
            raise StopIteration
        return now.batch

    def begin(loader: Any) -> Any:
        return iter_over(loader) if loader.dataset is not now.loader.dataset else repeat(now.batch, _length(loader))

    iter_over = DataLoader.__iter__
    setattr(_BaseDataLoaderIter, "__next__", replay)  # noqa: B010 - not `wrap`, which takes StopIteration for a fault
    setattr(DataLoader, "__iter__", begin)  # noqa: B010 - the same


def _length(loader: Any) -> int:
    """How many batches a pass over LOADER gives; where nobody knows, more than any trial takes."""
    try:
        return len(loader)
    except TypeError:
        return 1 << 62


def _batches(iterator: Any) -> int:
    """How many batches ITERATOR gives; where nobody knows, more than any trial takes."""
    try:
        return len(iterator._index_sampler) - int(iterator._num_yielded)
    except TypeError:  # a sampler without a length, as of a stream
        return 1 << 62


class _Held:
    """What the model and the loss functions were given in the first step, by the number of the call in a step."""

    def __init__(self, now: Interventions) -> None:
        self.now = now
        self.inputs: list[tuple[Any, Any]] = []
        self.targets: list[Any] = []
        self.is_first = True
        self._inputs = self._targets = 0

    def place(self) -> None:
        import torch

        for root in self.now.job.roots:
            root.register_forward_pre_hook(self._given, with_kwargs=True)
        own: Any = getattr(torch._C, "_nn")  # noqa: B009 - the stubs leave it out
        for owner, names in ((own, LOSSES), (torch, LOSSES_OF_TORCH)):
            for name in names:
                self.now.job.wrap(owner, name, self._asked)
        self.now.job.on("iterated", self._iterated)

    def _given(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not module.training:
            return None
        self._inputs += 1
        if self.is_first:
            self.inputs.append((args, kwargs))
            return None
        if self._inputs > len(self.inputs):
            self.now.give_up("it calls its models more often in one step than in another")
        return self.inputs[self._inputs - 1]

    def _asked(self, original: Any) -> Any:
        def loss(answers: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            if not answers.requires_grad:
                return original(answers, target, *args, **kwargs)
            self._targets += 1
            if self.is_first:
                self.targets.append(target)
            elif self._targets > len(self.targets):
                self.now.give_up("it computes more losses in one step than in another")
            else:
                target = self.targets[self._targets - 1]
            return original(answers, target, *args, **kwargs)

        return loss

    def _iterated(self, _step: int) -> None:
        if not self.targets:
            self.now.give_up("its batches come from no DataLoader, and its loss from no loss function of torch's")
        self.is_first, self._inputs, self._targets = False, 0, 0


def other_targets(now: Interventions, _value: float) -> None:
    """Gives each sample's inputs to another: what the model is given belongs to the targets of others.

    Targets that the model is given too stay where they are: its answers do not depend on them.
    """
    import torch

    root, args, kwargs = now.call
    places = now.places_that_matter()
    if not places:
        now.refuse(f"{type(root).__name__} is given no tensor with a row for each sample")
    rows = _rows(args, kwargs, places)
    if rows < 2:
        now.refuse(f"{type(root).__name__} is given one sample at a time")

    def exchanged(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not (module.training and torch.is_grad_enabled()):
            return None
        rows = _rows(args, kwargs, places)

        def other(place: int | str, value: Any) -> Any:
            is_meant = place in places and isinstance(value, torch.Tensor) and value.dim() and value.shape[0] == rows
            return value.roll(max(1, rows // 2), 0) if is_meant else value

        return tuple(starmap(other, enumerate(args))), {name: other(name, value) for name, value in kwargs.items()}

    root.register_forward_pre_hook(exchanged, with_kwargs=True)


def _rows(args: tuple[Any, ...], kwargs: Mapping[str, Any], places: Set[int | str]) -> int:
    """Samples in the first tensor of those PLACES; 0 where there is none."""
    items = (*enumerate(args), *kwargs.items())
    found = (value for place, value in items if place in places and hasattr(value, "dim") and value.dim())
    return next((int(value.shape[0]) for value in found), 0)
