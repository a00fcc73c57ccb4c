"""What a run writes down about the sizes of gradients, layer by layer, and about units that never get any."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_SETTLED = 20  # steps
_OFTEN = 8  # watched steps of an optimizer, of which one is written down layer by layer
_LAYERS = 64  # at most, evenly chosen over the depth
_CYCLE = 24  # watched steps in which a unit must get a gradient once, or it counts as dead
_CYCLES = 40  # at most


def surges(job: Job) -> None:
    """Writes nothing: a loss that leaps above three times its usual size makes the next steps worth watching."""
    usual = 0.0

    def iterated(step: int) -> None:
        nonlocal usual
        latest = job.clock.latest
        if latest is None:
            return
        size = abs(latest)
        if size > 3 * usual > 0 and step > _SETTLED:
            job.suspect()
        usual = 0.95 * usual + 0.05 * size if usual and size < 1e30 else size

    job.on("iterated", iterated)


def norms(job: Job) -> None:
    """The norm of an optimizer's gradients as its step uses them, and now and then that of each weight."""
    job.sampled()
    import weakref

    known: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
    turns: dict[int, int] = {}

    def stepping(optimizer: Any) -> None:
        import torch

        if getattr(optimizer, "found_inf", None) is not None:
            return  # a fused optimizer divides by the loss scale itself: these are still multiplied by it
        owners = job.with_gradient(optimizer)
        if not owners:
            return
        me = known.setdefault(optimizer, len(known))
        turns[me] = turns.get(me, 0) + 1
        each = torch.stack([n.float() for n in torch._foreach_norm([p.grad for p in owners])])  # pyright: ignore
        weights = _chosen(job, owners) if turns[me] % _OFTEN == 0 else []
        step, (path, line) = job.step, job.caller()

        def then(values: list[float]) -> None:
            whole = sqrt(sum(v * v for v in values))
            job.record("grad_norm", at=step, optimizer=me, value=whole, path=path, line=line)
            if weights:
                layers = [[name, values[at], size] for at, name, size in weights]
                job.record("layers", at=step, optimizer=me, layers=layers)

        job.late.read_all(each, then)

    job.on("stepping", stepping)


def units(job: Job) -> None:
    """Of every linear and convolutional layer: how many outputs got no gradient at all in 24 watched steps."""
    job.sampled()
    watch = _Units(job)
    probe = job.placing

    def stepping(optimizer: Any) -> None:
        watch.look(optimizer)
        if watch.cycles >= _CYCLES:
            job.withdraw(probe)

    job.on("stepping", stepping)


class _Units:
    """Flags by layer, on the layer's own device: which outputs have had a gradient that is not zero."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.cycles = self.turns = 0
        self.alive: dict[tuple[str, int], Any] = {}  # by name and number of outputs
        self.closer: int | None = None  # the first optimizer that stepped counts the steps

    def look(self, optimizer: Any) -> None:
        self.closer = self.closer or id(optimizer)
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
        for name, layer in self.layers():
            weight, bias = layer.weight, layer.bias
            if id(weight) in owned and weight.grad is not None and weight.grad.dim() > 1:
                had = weight.grad.flatten(1).any(1)
                if bias is not None and bias.grad is not None:
                    had = had | (bias.grad != 0)
                key = name, len(had)
                self.alive[key] = had | self.alive[key] if key in self.alive else had
        if id(optimizer) == self.closer:
            self.turns += 1
            if self.turns % _CYCLE == 0:
                self.tell()

    def named(self) -> list[tuple[str, Any]]:
        """The roots, and what the names of their layers begin with: the root's class, where there are several."""
        roots = list(self.job.roots)
        return [(f"{type(root).__name__}." if len(roots) > 1 else "", root) for root in roots]

    def layers(self) -> list[tuple[str, Any]]:
        import torch

        kinds = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)
        found = [(f"{prefix}{name}", part) for prefix, root in self.named() for name, part in root.named_modules()]
        own = [
            (name, part) for name, part in found if isinstance(part, kinds) and type(part.weight) is torch.nn.Parameter
        ]
        return [(name, part) for name, part in own if not getattr(part, "transposed", False)][:_LAYERS]

    def tell(self) -> None:
        import torch

        self.cycles += 1
        flags, self.alive = self.alive, {}
        if not flags:
            return
        names, sizes = zip(*flags, strict=True)
        devices = {each.device for each in flags.values()}
        if len(devices) > 1:
            return
        living = torch.stack([each.sum() for each in flags.values()]).float()
        step = self.job.step

        def then(values: list[float]) -> None:
            layers = [[name, size, size - int(v)] for name, size, v in zip(names, sizes, values, strict=True)]
            self.job.record("units", at=step, over=_CYCLE, layers=layers)

        self.job.late.read_all(living, then)


def _chosen(job: Job, owners: list[Any]) -> list[tuple[int, str, int]]:
    """Position, name and size of the weights among OWNERS, in the order of the optimizer; biases left out."""
    found = [(at, job.module_name(p), p.numel()) for at, p in enumerate(owners) if p.dim() > 1]
    named = [(at, name, size) for at, name, size in found if name is not None]
    step = max(1, -(-len(named) // _LAYERS))
    return named[::step]
