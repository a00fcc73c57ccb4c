"""What a run writes down about the sizes of gradients, layer by layer, and about units that never get any."""

from __future__ import annotations

import weakref
from functools import partial
from itertools import count
from math import sqrt
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import GradNorm, Sharded

from . import events
from ._births import Births
from .events import Layers, Units

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

    from ._births import Told
    from .events import Layer

_SETTLED = 20  # steps
_STANDING = frozenset({48, 96, 192, 384, 768})  # steps at which it is asked whether the loss still falls
_OFTEN = 8  # watched steps of an optimizer, of which one is written down layer by layer
_LAYERS = 64  # at most, evenly chosen over the depth
_UNEQUAL = 100.0  # times
_RISEN = 3.0  # times the highest norm before
_LARGE = 1e3  # a gradient's root mean square
_CYCLE = 24  # watched steps in which a unit must get a gradient once, or it counts as dead
_SCREENED = 8  # watched steps, of which one tells which layers seem dead
_CYCLES = 40  # at most
_UNITS = 4  # outputs of a layer, at least
_NEARLY = 0.9  # of them, at least, seem dead


def surges(job: Job) -> None:
    """Writes nothing: a loss that leaps above three times its usual size makes the next steps worth watching, and one
    that stands where it stood when the number of steps was half of it.
    """
    usual = before = 0.0

    def iterated(step: int) -> None:
        nonlocal usual, before
        latest = job.clock.latest
        if latest is None:
            return
        size = abs(latest)
        if size > 3 * usual > 0 and step > _SETTLED:
            job.suspect()
        if step in _STANDING:
            if usual > 0.9 * before > 0:
                job.suspect()
            before = usual
        usual = 0.95 * usual + 0.05 * size if usual and size < 1e30 else size

    job.listen(iterated)


def norms(job: Job) -> None:
    """The norm of an optimizer's gradients as its step uses them, and now and then that of each weight and bias."""
    job.sampled()
    job.computes()
    watch = _Norms(job)
    job.listen(watch.stepping)


class _Norms:
    def __init__(self, job: Job) -> None:
        self.job, self.births = job, Births(job)
        self.known: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.numbers = count()  # one that is gone, as of an earlier fold, keeps its number
        self.turns: dict[int, int] = {}
        self.rising: dict[int, bool] = {}  # of each optimizer: whether the norm has just left what it was
        self.highest: dict[int, float] = {}
        self.told: set[str] = set()  # names of parameters whose lines are written
        self.made: dict[str, tuple[str, int]] = {}  # by name, where
        self.sharded: weakref.WeakSet[Any] = weakref.WeakSet()  # optimizers whose gradients lie on several ranks

    def stepping(self, optimizer: Any) -> None:
        job = self.job
        if getattr(optimizer, "found_inf", None) is not None:
            return  # a fused optimizer divides by the loss scale itself: these are still multiplied by it
        if optimizer in self.sharded or (optimizer not in self.known and self.shards(optimizer)):
            return
        turn = self.turns.get(self.known.get(optimizer, -1), 0) + 1
        due = turn == 1 or turn % _OFTEN == 0 or self.rising.pop(self.known.get(optimizer, -1), False)
        each = job.norms(optimizer, apart=due)
        if each is None:
            return
        me = self.known[optimizer] = self.known[optimizer] if optimizer in self.known else next(self.numbers)
        self.turns[me] = turn
        if turn == 1:
            job.record(events.Births(optimizer=me, further=self.births.of_optimizer(optimizer)))
        owners = job.with_gradient(optimizer) if due else []
        weights, biases = (_chosen(job, owners, deep) if due else [] for deep in (True, False))
        rate = optimizer.param_groups[0].get("lr")
        rate, step = rate if isinstance(rate, float) else None, job.step
        path, line = job.caller()
        first = self.where(weights[0][1]) if weights else ("", 0)

        def then(values: list[float]) -> None:
            norm = sqrt(sum(v * v for v in values))
            job.record(GradNorm(at=step, optimizer=me, value=norm, lr=rate, path=path, line=line))
            self.rise(me, norm)
            if weights:
                layers, shifts = ([(name, values[at], size) for at, name, size in some] for some in (weights, biases))
                made = Layers(at=step, optimizer=me, layers=layers, biases=shifts, path=first[0], line=first[1])
                job.record(made)
                self.tell(layers, shifts)

        job.late.read_all(each, then)

    def where(self, name: str) -> tuple[str, int]:
        """Where the weight of that NAME is made, which is looked for once in the code of the user's classes."""
        if name not in self.made:
            self.made[name] = _made(self.job, name)
        return self.made[name]

    def shards(self, optimizer: Any) -> bool:
        """Whether gradients are divided among ranks: what lies here has a norm that says nothing of the whole."""
        owners = [each for group in optimizer.param_groups for each in group["params"]]
        parts = sum(type(each).__name__ == "DTensor" for each in owners)
        if parts:
            self.sharded.add(optimizer)
            self.job.record(Sharded(optimizer=type(optimizer).__name__, parts=parts, of=len(owners)))
        return parts > 0

    def rise(self, me: int, norm: float) -> None:
        """The next step is written down layer by layer when the norm has risen several times over."""
        highest = self.highest.setdefault(me, norm)
        if norm > _RISEN * highest > 0:
            self.rising[me], self.highest[me] = True, norm

    def tell(self, *sizes: list[Layer]) -> None:
        """Writes the lines of the layers, once, when their gradients are so unequal or large that somebody may ask."""
        known = [norm / size**0.5 for some in sizes for _, norm, size in some]
        names = {name for some in sizes for name, _, _ in some} - self.told
        if not names or not (max(known) > _UNEQUAL * min(known) or max(known) > _LARGE):
            return
        self.told |= names
        lines = {}
        for root in self.job.roots:
            squashing = self.births.squashing(root)
            for name, owner in root.named_parameters():
                if name in names:
                    lines[name] = self.births.of_parameter(owner, name) + squashing
        self.job.record(events.Births(parameters=lines))


def units(job: Job) -> None:
    """Of every layer that seems dead: how many outputs got no gradient and were never positive in 24 watched steps."""
    job.sampled()
    job.computes()
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

    A layer that seems dead in three steps of a cycle is heard in all steps of another one: an expert that nobody calls
    has no gradient either, and only outputs that were never positive are those of dead units.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.births = job, Births(job)
        self.owners: dict[str, list[Told]] = {}  # lines of the optimizer, by layer
        self.cycles = self.turns = 0
        self.alive: dict[str, Any] = {}
        self.positive: dict[str, Any] = {}  # of the layers that are heard: whether each output was ever positive
        self.hooks: list[Any] = []
        self.closer: int | None = None  # the first optimizer that stepped counts the steps
        self.screened: list[tuple[str, Any]] | None = None  # the layers of this cycle, weak
        self.heard: list[tuple[str, Any]] = []  # of them, those that are heard

    def look(self, optimizer: Any) -> None:
        self.closer = self.closer or id(optimizer)
        if self.screened is None:
            self.screened = [(name, weakref.ref(layer)) for name, layer in self.layers()]
        layers = self.heard if self.turns % _SCREENED else self.screened
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]} if layers else set()
        for name, kept in layers:
            layer = kept()
            weight: Any = layer._parameters.get("weight") if layer is not None else None
            if id(weight) in owned and weight.grad is not None and weight.grad.dim() > 1:
                self.owners[name] = self.births.of_optimizer(optimizer)
                had, known = _touched(layer), self.alive.get(name)
                self.alive[name] = had | known if known is not None and len(known) == len(had) else had
        if id(optimizer) == self.closer:
            self.turns += 1
            if self.turns % _CYCLE == 0:
                self.tell()

    def layers(self, kinds: tuple[str, ...] = ("Linear", "_ConvNd")) -> list[tuple[str, Any]]:
        roots = list(self.job.roots)
        found = [
            (f"{type(root).__name__}.{name}" if len(roots) > 1 else name, part)
            for root in roots
            for name, part in root.named_modules()
            if not {each.__name__ for each in type(part).__mro__}.isdisjoint(kinds)
            and not getattr(part, "transposed", False)
        ]
        # the attribute may be a parametrization, whose power iteration goes on whenever it is read
        return [(name, part) for name, part in found if _plain(part._parameters.get("weight"))][:_LAYERS]

    def tell(self) -> None:
        """Reads the flags, writes what has been heard, and listens to those layers that seem dead."""
        self.cycles += 1
        self.screened = None
        flags, self.alive = self.alive, {}
        heard, self.positive = self.positive, {}
        self.silence()
        scales = self.layers(("_NormBase", "GroupNorm"))  # of these the last gradient tells enough to begin with
        flags |= {name: _touched(part) for name, part in scales if part._parameters["weight"].grad is not None}
        for name, layer in self.layers() + scales:
            if name not in flags:
                continue
            size = len(flags[name])
            if name in heard and len(heard[name]) == size:
                self.job.late.read((flags[name] | heard[name]).sum(), partial(self.record, name, layer, self.job.step))
            elif size >= _UNITS and "_orig_mod" not in name:
                self.job.late.read(flags[name].sum(), partial(self.listen, name, weakref.ref(layer)))

    def record(self, name: str, layer: Any, step: int, living: float) -> None:
        size = len(layer._parameters["weight"])
        lines = [
            line
            for each in ("bias", "weight")
            if layer._parameters.get(each) is not None
            for line in self.births.of_parameter(layer._parameters[each], f"{name}.{each}")
        ]
        path, line = _made(self.job, name)
        self.job.record(
            Units(
                at=step,
                over=_CYCLE,
                layer=name,
                of=size,
                dead=size - int(living),
                path=path,
                line=line,
                further=lines + self.owners.get(name, []),
                after=self.after(name)[0],
            )
        )

    def after(self, name: str) -> tuple[str, Any]:
        """Path and module of what follows in the same parent, where it cuts off what is negative; ("", None) else."""
        above, _, own = name.rpartition(".")
        for root in self.job.roots:
            parent = dict(root.named_modules()).get(above)
            names = list(parent._modules) if parent is not None else []
            if parent is not None and own in names[:-1]:
                following = names[names.index(own) + 1]
                part = parent._modules[following]
                if type(part).__name__ in ("ReLU", "ReLU6", "Hardtanh", "Threshold"):
                    return ".".join(filter(None, (above, following))), part
        return "", None

    def listen(self, name: str, kept: Any, living: float) -> None:
        """Hears what a layer that seems dead gives on: itself, or what cuts it off, which a skip may keep alive."""
        import torch

        layer = kept()
        if layer is None or living > (1 - _NEARLY) * len(layer._parameters["weight"]):
            return
        last = isinstance(layer, torch.nn.Linear)

        def heard(_part: Any, _inputs: Any, output: Any) -> None:
            if self.job.governor.watching and isinstance(output, torch.Tensor) and output.dim() > 1 and output.numel():
                positive = (output.detach().movedim(-1 if last else 1, 0).flatten(1) > 0).any(1)
                self.positive[name] = positive | self.positive[name] if name in self.positive else positive

        self.hooks.append((self.after(name)[1] or layer).register_forward_hook(heard))
        self.heard.append((name, kept))

    def silence(self) -> None:
        for hook in self.hooks:
            hook.remove()
        self.hooks.clear()
        self.heard.clear()


def _plain(weight: Any) -> bool:
    import torch

    return type(weight) is torch.nn.Parameter


def _touched(layer: Any) -> Any:
    """Of each output of a layer: whether its weights or its bias have a gradient other than 0."""
    weight, bias = layer._parameters["weight"], layer._parameters.get("bias")
    had = weight.grad.reshape(len(weight), -1).any(1)
    return had | (bias.grad != 0) if bias is not None and bias.grad is not None else had


def _made(job: Job, name: str) -> tuple[str, int]:
    """Where the user's classes set the attribute of that NAME, of a layer or its weight."""
    found = (job.written.made(root, name.removeprefix(f"{type(root).__name__}.")) for root in job.roots)
    return next((where for where in found if where[1]), ("", 0))


def _chosen(job: Job, owners: list[Any], deep: bool) -> list[tuple[int, str, int]]:
    """Position, name and size of the weights among OWNERS, or else of their biases, in the order of the optimizer."""
    found = [(at, job.module_name(p), p.numel()) for at, p in enumerate(owners) if (p.dim() > 1) == deep]
    if not deep:
        found = [each for each in found if each[1] is not None and "bias" in each[1]]
    named = [(at, name, size) for at, name, size in found if name is not None]
    step = max(1, -(-len(named) // _LAYERS))
    return named[::step]
