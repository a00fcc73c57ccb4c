"""What a run writes down about the sizes of gradients, layer by layer, and about units that never get any."""

from __future__ import annotations

from functools import partial
from itertools import count
from math import sqrt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_SETTLED = 20  # steps
_OFTEN = 8  # watched steps of an optimizer, of which one is written down layer by layer
_LAYERS = 64  # at most, evenly chosen over the depth
_CYCLE = 24  # watched steps in which a unit must get a gradient once, or it counts as dead
_CYCLES = 40  # at most
_UNITS = 16  # outputs of a layer, at least
_NEARLY = 0.9  # of them, at least, seem dead


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

    job.listen(iterated)


def norms(job: Job) -> None:
    """The norm of an optimizer's gradients as its step uses them, and now and then that of each weight."""
    job.sampled()
    import weakref

    known: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
    numbers = count()  # one that is gone, as of an earlier fold, keeps its number
    turns: dict[int, int] = {}

    def stepping(optimizer: Any) -> None:
        import torch

        if getattr(optimizer, "found_inf", None) is not None:
            return  # a fused optimizer divides by the loss scale itself: these are still multiplied by it
        owners = job.with_gradient(optimizer)
        if not owners:
            return
        me = known[optimizer] = known[optimizer] if optimizer in known else next(numbers)
        turns[me] = turns.get(me, 0) + 1
        each = torch.stack([n.float() for n in torch._foreach_norm([p.grad for p in owners])])  # pyright: ignore
        weights = _chosen(job, owners) if turns[me] % _OFTEN == 0 else []
        step, (path, line) = job.step, job.caller()
        first = _made(job, weights[0][1]) if weights else ("", 0)

        def then(values: list[float]) -> None:
            whole = sqrt(sum(v * v for v in values))
            job.record("grad_norm", at=step, optimizer=me, value=whole, path=path, line=line)
            if weights:
                layers = [[name, values[at], size] for at, name, size in weights]
                job.record("layers", at=step, optimizer=me, layers=layers, path=first[0], line=first[1])

        job.late.read_all(each, then)

    job.listen(stepping)


def units(job: Job) -> None:
    """Of every layer that seems dead: how many outputs got no gradient and were never positive in 24 watched steps."""
    job.sampled()
    watch = _Units(job)
    probe = job.placing
    job.undo(watch.silence)

    def stepping(optimizer: Any) -> None:
        watch.look(optimizer)
        if watch.cycles >= _CYCLES:
            job.withdraw(probe)

    job.listen(stepping)


class _Units:
    """Flags by layer, on the layer's own device: which outputs have had a gradient that is not zero.

    A layer that seems dead is heard for another cycle: an expert that nobody calls has no gradient either, and only
    outputs that were never positive are those of dead units.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.cycles = self.turns = 0
        self.alive: dict[str, Any] = {}
        self.positive: dict[str, Any] = {}  # of the layers that are heard: whether each output was ever positive
        self.hooks: list[Any] = []
        self.closer: int | None = None  # the first optimizer that stepped counts the steps

    def look(self, optimizer: Any) -> None:
        self.closer = self.closer or id(optimizer)
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
        for name, layer in self.layers():
            weight, bias = layer._parameters["weight"], layer._parameters.get("bias")
            if id(weight) in owned and weight.grad is not None and weight.grad.dim() > 1:
                had = weight.grad.flatten(1).any(1)
                if bias is not None and bias.grad is not None:
                    had = had | (bias.grad != 0)
                known = self.alive.get(name)
                self.alive[name] = had | known if known is not None and len(known) == len(had) else had
        if id(optimizer) == self.closer:
            self.turns += 1
            if self.turns % _CYCLE == 0:
                self.tell()

    def layers(self) -> list[tuple[str, Any]]:
        import torch

        kinds = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)
        roots = list(self.job.roots)
        found = [
            (f"{type(root).__name__}.{name}" if len(roots) > 1 else name, part)
            for root in roots
            for name, part in root.named_modules()
            if isinstance(part, kinds) and not getattr(part, "transposed", False)
        ]
        # the attribute may be a parametrization, whose power iteration goes on whenever it is read
        return [(name, part) for name, part in found if type(part._parameters.get("weight")) is torch.nn.Parameter][
            :_LAYERS
        ]

    def tell(self) -> None:
        """Reads the flags, writes what has been heard, and listens to those layers that seem dead."""
        self.cycles += 1
        flags, self.alive = self.alive, {}
        heard, self.positive = self.positive, {}
        self.silence()
        step = self.job.step
        for name, layer in self.layers():
            if name not in flags:
                continue
            size = len(flags[name])
            if name in heard:
                self.job.late.read((flags[name] | heard[name]).sum(), partial(self.record, name, size, step))
            elif size >= _UNITS and "_orig_mod" not in name:
                self.job.late.read(flags[name].sum(), partial(self.listen, name, size, layer))

    def record(self, name: str, size: int, step: int, living: float) -> None:
        path, line = _made(self.job, name)
        dead = size - int(living)
        self.job.record("units", at=step, over=_CYCLE, layer=name, of=size, dead=dead, path=path, line=line)

    def listen(self, name: str, size: int, layer: Any, living: float) -> None:
        import torch

        def heard(part: Any, _inputs: Any, output: Any) -> None:
            if self.job.governor.watching and isinstance(output, torch.Tensor) and output.numel():
                outputs = output.detach().movedim(1 if isinstance(part, torch.nn.modules.conv._ConvNd) else -1, 0)
                positive = (outputs.flatten(1) > 0).any(1)
                self.positive[name] = positive | self.positive[name] if name in self.positive else positive

        if living <= (1 - _NEARLY) * size:
            self.hooks.append(layer.register_forward_hook(heard))

    def silence(self) -> None:
        for hook in self.hooks:
            hook.remove()
        self.hooks.clear()


def _made(job: Job, name: str) -> tuple[str, int]:
    """Where the user's classes set the attribute of that NAME, of a layer or its weight."""
    found = (job.written.made(root, name.removeprefix(f"{type(root).__name__}.")) for root in job.roots)
    return next((where for where in found if where[1]), ("", 0))


def _chosen(job: Job, owners: list[Any]) -> list[tuple[int, str, int]]:
    """Position, name and size of the weights among OWNERS, in the order of the optimizer; biases left out."""
    found = [(at, job.module_name(p), p.numel()) for at, p in enumerate(owners) if p.dim() > 1]
    named = [(at, name, size) for at, name, size in found if name is not None]
    step = max(1, -(-len(named) // _LAYERS))
    return named[::step]
