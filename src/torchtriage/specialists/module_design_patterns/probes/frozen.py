"""What a run writes down about frozen layers that still hold the numbers of a random initialisation."""

from __future__ import annotations

import re
import weakref
from functools import partial
from math import isclose, prod, sqrt
from typing import TYPE_CHECKING, Any

from .events import FrozenAtRandom

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchtriage.examine.run.job.job import Job

_STEP = 1  # the step after which it is looked for
_AGAIN = frozenset({20, 208, 2000})  # steps after which the numbers are held against the first ones
_CLOSELY, _SPACED = 64, 16  # steps that are all looked at, and how far apart later ones are
_NOTED = 4096  # matrices of which is known where they were made
_VALUES = 4096  # of a matrix, that are looked at
_LEAST = 256  # numbers: of fewer nobody can tell how they are distributed
_WRITES = 6  # in place, that an initialisation takes at most: four for an embedding of transformers, with its padding
_CLASSES = 12
_SIGMAS = 4.5  # by which a figure of numbers at random may lie beside what is expected
_STDS = (1.0, 0.1, 0.05, 0.02, 0.01)  # of normal numbers, whatever the size: embeddings', and those of transformers
_FREEZING = re.compile(r"requires_grad\s*=\s*False|requires_grad_\(\s*(?:requires_grad\s*=\s*)?False")
_LINES = 3  # that freeze, at most, where they are named
_INNER = "module_design_patterns/frozen within"


def frozen(job: Job) -> None:
    """Models whose first layers, most of their numbers, never require a gradient, and are as they were drawn."""
    import torch

    watch = _Frozen(job)
    job.wrap(torch.nn.Module, "register_parameter", watch.registering)
    job.wrap(torch.nn.Module, "load_state_dict", watch.loading)
    job.listen(watch.iterated, watch.ending)


class _Matrix:
    """The frozen weight of a layer. drawn: its numbers are those of a random initialisation, as far as is known."""

    def __init__(self, layer: Any, weight: Any) -> None:
        self.layer, self.weight, self.version = id(layer), weakref.ref(weight), weight._version
        self.size, self.fans = weight.numel(), _fans(weight)
        self.figures: list[float] | None = None
        self.drawn, self.moved = False, False

    def read(self, figures: list[float]) -> None:
        """For late.read_all."""
        if self.figures is None:
            self.figures = figures
            self.drawn = self.size < _LEAST or _is_drawn(self.fans, min(self.size, _VALUES), figures)
        self.moved = self.moved or figures != self.figures

    def check(self) -> bool:
        """Whether it is still there, and as it was."""
        weight = self.weight()
        if weight is not None and (weight.requires_grad or weight._version != self.version):
            self.moved = True
        return weight is not None and not self.moved


class _Pass:
    """The layers of a root in the order in which a forward pass calls them."""

    def __init__(self, frozen: Sequence[Any], trained: Sequence[Any]) -> None:
        self.frozen, self.trained = {id(each) for each in frozen}, {id(each) for each in trained}
        self.ran: set[int] = set()  # frozen layers
        self.first: tuple[int, ...] | None = None  # shape of the samples that the first of them is given
        self.is_led = False  # a trained layer runs before a frozen one, or is given such samples: beside them
        self.is_followed = False  # a trained layer has run

    def calling(self, original: Any) -> Any:
        def forward(layer: Any, *args: Any, **kwargs: Any) -> Any:
            self.note(layer, args)
            return original(layer, *args, **kwargs)

        return forward

    def note(self, layer: Any, args: tuple[Any, ...]) -> None:
        shape = tuple(args[0].shape[1:]) if args and hasattr(args[0], "shape") else None
        if id(layer) in self.frozen:
            self.is_led = self.is_led or self.is_followed
            self.first = self.first if self.ran else shape
            self.ran.add(id(layer))
        elif id(layer) in self.trained and not self.is_followed:
            self.is_led = not self.ran or None in (shape, self.first) or shape == self.first
            self.is_followed = True


class _Frozen:
    def __init__(self, job: Job) -> None:
        import torch

        self.job, self.probe, self.kind = job, job.placing, torch.nn.Parameter
        self.born: dict[int, tuple[Any, tuple[str, int]]] = {}  # weights, weak, and where they were made
        self.loaded: weakref.WeakSet[Any] = weakref.WeakSet()  # modules that have got weights from elsewhere
        self.matrices: list[_Matrix] = []
        self.event: FrozenAtRandom | None = None
        self.passed: _Pass | None = None

    def registering(self, original: Any) -> Any:
        def register(module: Any, name: str, parameter: Any) -> None:
            original(module, name, parameter)
            if type(parameter) is self.kind and parameter.dim() > 1 and len(self.born) < _NOTED:
                self.born[id(parameter)] = weakref.ref(parameter), self.job.caller()

        return register

    def loading(self, original: Any) -> Any:
        def load_state_dict(module: Any, *args: Any, **kwargs: Any) -> Any:
            self.loaded.add(module)
            return original(module, *args, **kwargs)

        return load_state_dict

    def iterated(self, step: int) -> None:
        if step < _STEP:
            return
        if not self.matrices:
            for root in list(self.job.roots):
                self.look(root)
            if not self.matrices:
                self.job.withdraw(self.probe)
        elif step < _CLOSELY or step % _SPACED == 0:
            self.check(step)
            if step in _AGAIN:
                self.job.withdraw(_INNER)  # of a root that nobody calls any more
                self.read()

    def check(self, step: int) -> None:
        """Of a model that is gone by the end, the last look counts."""
        is_there = [each.check() for each in self.matrices]
        if self.event is not None and all(is_there):
            self.event.steps = step + 1
        if any(each.moved for each in self.matrices):
            self.job.withdraw(_INNER)
            self.job.withdraw(self.probe)

    def look(self, root: Any) -> None:
        import torch

        layers = [(name, each) for name, each in root.named_modules() if _own(each)]
        held = [(name, each) for name, each in layers if not any(one.requires_grad for one in _own(each))]
        trained = [each for _, each in layers if all(one.requires_grad for one in _own(each))]
        plain = [each for _, each in held if type(each).__module__.startswith("torch.nn.")]
        matrices = [(each, one) for each in plain for one in _own(each) if one.dim() > 1]
        is_mixed = len(held) + len(trained) < len(layers)  # adapters within a layer, scores for weights at random
        if is_mixed or not trained or not matrices or self.matrices or _is_from_elsewhere(root, self.loaded):
            return
        if not all(self.is_new(one) for _, one in matrices) or not all(map(_is_neutral, root.modules())):
            return
        kinds = {type(each) for _, each in layers}
        if len(kinds) > _CLASSES or any(map(_is_compiled, root.modules())):
            return
        path, line = self.born[id(matrices[0][1])][1]
        self.event = FrozenAtRandom(
            model=type(root).__name__,
            names=[name for name, _ in held],
            kinds=sorted({type(each).__name__ for each in root.modules()}),
            matrices=len(matrices),
            of=sum(each.numel() for each in root.parameters()),
            path=path,
            line=line,
        )
        tables = [each for _, each in layers if isinstance(each, torch.nn.Embedding)]
        self.event.tables = tables == [each for each, _ in matrices]
        self.matrices = [_Matrix(each, one) for each, one in matrices]
        self.passed = _Pass([each for _, each in held], trained)
        self.read()
        self.job.place(_INNER, partial(self.follow, kinds, weakref.ref(root), self.passed))

    def is_new(self, weight: Any) -> bool:
        """Whether WEIGHT was made in this job, and hardly written to since."""
        kept = self.born.get(id(weight))
        is_plain = weight.is_floating_point() and weight.element_size() >= 4
        return is_plain and kept is not None and kept[0]() is weight and weight._version <= _WRITES

    def follow(self, kinds: set[type], root: Any, passed: _Pass, job: Job) -> None:
        """Sees in which order the layers run in the next pass of ROOT."""

        def forwarded(module: Any, _output: Any) -> None:
            if module is root():
                job.withdraw(_INNER)

        for kind in kinds:
            job.wrap(kind, "forward", passed.calling)
        job.listen(forwarded)

    def read(self) -> None:
        for matrix in self.matrices:
            weight = matrix.weight()
            if weight is not None:
                self.job.late.read_all(_figures(weight), matrix.read)

    def ending(self) -> None:
        event, passed = self.event, self.passed
        if event is None or passed is None:
            return
        if all((weight := each.weight()) is not None and weight.is_cpu for each in self.matrices):
            self.read()
        self.check(self.job.step)
        if passed.is_followed and not passed.is_led and not any(each.moved for each in self.matrices):
            used = [each for each in self.matrices if each.layer in passed.ran]
            event.layers, event.frozen = len(used), sum(each.size for each in used)
            event.drawn = sum(each.drawn for each in self.matrices)
            event.measurable = sum(each.size for each in used if each.size >= _LEAST)
            lines = self.job.lines_with(_FREEZING, _LINES)
            event.further = [("parameters are frozen here", *where) for where in lines]
            self.job.record(event)


def _own(layer: Any) -> list[Any]:
    return [each for each in layer._parameters.values() if each is not None]


def _is_neutral(layer: Any) -> bool:
    """Whether a norm layer that is frozen scales by one or zero, and shifts by zero, as it was made; all else is."""
    own = _own(layer)
    if "norm" not in type(layer).__name__.lower() or any(each.requires_grad or not each.is_cpu for each in own):
        return True
    return all(bool((each == 0).all()) or bool((each == 1).all()) for each in own)


def _is_from_elsewhere(root: Any, loaded: weakref.WeakSet[Any]) -> bool:
    """Whether ROOT or a part of it has got a state, or transformers has made it from a checkpoint with a name."""
    named = (getattr(getattr(each, "config", None), "_name_or_path", "") for each in root.modules())
    return any(each in loaded for each in root.modules()) or any(named) or any(map(_holds(root), loaded))


def _holds(root: Any) -> Any:
    """Whether a module that is loaded is one around ROOT."""
    first = next(root.parameters())
    return lambda module: any(each is first for each in module.parameters())


def _is_compiled(module: Any) -> bool:
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def _fans(weight: Any) -> tuple[int, int]:
    """As torch.nn.init counts them: how many inputs and outputs a unit has."""
    field = prod(weight.shape[2:])
    return weight.shape[1] * field, weight.shape[0] * field


def _figures(weight: Any) -> Any:
    """Of some of the numbers: the largest, the mean, and the means of the second and the fourth powers."""
    import torch

    flat = weight.detach().reshape(-1)
    some = flat[:: max(flat.numel() // _VALUES, 1)][:_VALUES].double()
    return torch.stack([some.abs().max(), some.mean(), some.square().mean(), some.square().square().mean()])


def _is_drawn(fans: tuple[int, int], number: int, figures: list[float]) -> bool:
    """Whether NUMBER numbers of these FIGURES may be uniform or normal, with a scale that initialisations have."""
    largest, mean, square, fourth = figures
    if square <= 0 or abs(mean) > _SIGMAS * sqrt(square / number):
        return False
    for bound in _bounds(fans):
        spread = sqrt(0.8 / number)  # relative standard deviation of the mean square of uniform numbers
        if largest <= bound * (1 + 1e-6) and isclose(square, bound**2 / 3, rel_tol=_SIGMAS * spread):
            return isclose(fourth / square**2, 1.8, rel_tol=_SIGMAS * sqrt(1.5 / number))
    wide, tail = _SIGMAS * sqrt(2 / number), _SIGMAS * sqrt(24 / number)
    is_normal = abs(fourth / square**2 - 3) <= tail
    return is_normal and any(isclose(square, std**2, rel_tol=wide) for std in _deviations(fans))


def _bounds(fans: tuple[int, int]) -> Iterator[float]:
    """Of uniform numbers: a layer's own, those of Xavier and He, and those of a recurrent layer."""
    inputs, outputs = fans
    yield from (1 / sqrt(inputs), sqrt(6 / (inputs + outputs)), sqrt(6 / inputs), sqrt(6 / outputs))
    yield from (1 / sqrt(outputs / gates) for gates in (1, 3, 4))


def _deviations(fans: tuple[int, int]) -> Iterator[float]:
    inputs, outputs = fans
    yield from (sqrt(2 / inputs), sqrt(2 / outputs), 1 / sqrt(inputs), 1 / sqrt(outputs), sqrt(2 / (inputs + outputs)))
    yield from _STDS
