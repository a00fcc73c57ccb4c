"""What a run writes down about parameters that get gradients and are in no optimizer."""

from __future__ import annotations

import weakref
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from ._astray import Astray
from ._free import free, made_at
from .events import Unowned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchtriage.examine.run.job.job import Job

    from .events import Homeless

_ENOUGH = 4  # looks, at backward passes 1, 2, 4, 8 and so on, in which a parameter got a new gradient
_EVERY = 50  # backward passes after which they are looked for again
_NAMES = 8  # parameters written down by name


def unowned(job: Job) -> None:
    """Parameters of modules that backward gives gradients to, that no optimizer has had, and that nothing moves.

    They are looked for at backward passes 1, 2, 4, 8 and so on, at every 50th, or soon after, and once more at the
    end: what an optimizer gets later was only waiting for its turn.
    """
    import torch

    job.spaced()
    watch = _Unowned(job)
    watch.find(job.alive(torch.optim.Optimizer), job.alive(torch.nn.Module))
    job.listen(watch.backwarded, watch.ending)
    job.wrap(torch.autograd, "grad", watch.asking)
    job.wrap(torch.optim.Optimizer, "add_param_group", watch.adding)
    job.wrap(torch.nn.Module, "register_parameter", watch.registering)
    job.wrap(torch.nn.Module, "load_state_dict", watch.loading)
    job.wrap(torch.nn.Parameter, "__deepcopy__", watch.copying)


class _Noted(dict[int, "tuple[weakref.ref[Any], Any]"]):
    """Something noted of each of many tensors, by identity: tensors compare by value."""

    def note(self, tensor: Any, what: Any = None) -> None:
        """Keeps what was noted first."""
        if self.of(tensor) is None:
            self[id(tensor)] = (weakref.ref(tensor), what)
            if len(self) > 1000 and not len(self) & (len(self) - 1):
                for gone in [key for key, (kept, _) in self.items() if kept() is None]:
                    del self[gone]

    def of(self, tensor: Any) -> tuple[Any] | None:
        """What was noted of TENSOR, in a tuple; None for a tensor that was not noted."""
        kept = self.get(id(tensor))
        return (kept[1],) if kept is not None and kept[0]() is tensor else None


class _Orphan:
    """One such parameter: in how many looks it had a new gradient; settled once it is clear that it has a home.

    steps: those made when it was met. born: where it was made or copied, if that was after the first optimizer.
    """

    def __init__(self, parameter: Any, name: str, root: str, steps: int, born: tuple[str, int] | None) -> None:
        self.name, self.root, self.steps, self.born = name, root, steps, born
        self.first = parameter.detach().flatten()[:64].clone()
        self.gradient = (0, 0)
        self.looks, self.settled = 0, False

    def look(self, job: Job, parameter: Any) -> None:
        now = (id(parameter.grad), parameter.grad._version)
        if now != self.gradient and (not parameter.grad.is_cpu or bool(parameter.grad.any())):
            self.looks += 1
        self.gradient = now
        self.compare(job, parameter)

    def compare(self, job: Job, parameter: Any) -> None:
        """Whoever changed it, it is not forgotten."""
        now = parameter.detach().flatten()[:64]
        if now.device == self.first.device:
            job.late.read((now != self.first).any().float(), self.change)
        else:
            self.settled = True

    def change(self, value: float) -> None:
        self.settled = self.settled or bool(value)


class _Unowned:
    """What is known of optimizers, of the parameters that they were given, and of those that have no home."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.next = 1  # backward pass at which to look
        self.met = 0  # the one at which an orphan was met last
        self.told = False
        self.turns = Astray(job, lambda leaf: self.orphans.of(leaf) is not None)
        self.astray = False  # no optimizer has any parameter of a module that is called
        self.largest: tuple[str, tuple[str, int]] = ("", ("", 0))  # optimizer, and where it was built
        self.owned, self.born, self.loaded, self.orphans = _Noted(), _Noted(), _Noted(), _Noted()
        self.made: dict[str, list[tuple[str, int]]] = {}  # by name of what no module has: the line that makes it
        self.registered, self.asked = _Noted(), _Noted()  # with a module, and by autograd.grad

    def find(self, optimizers: list[Any], modules: list[Any]) -> None:
        """What is older than the watch: nobody saw whether a module was loaded, so it counts as loaded."""
        for parameter in (p for each in optimizers for group in each.param_groups for p in group["params"]):
            self.owned.note(parameter)
        for parameter in (p for module in modules for p in module._parameters.values() if p is not None):
            self.loaded.note(parameter)

    def adding(self, original: Any) -> Any:
        def add_param_group(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            for parameter in optimizer.param_groups[-1]["params"]:
                self.owned.note(parameter)
                for orphan in self.orphans.of(parameter) or ():
                    orphan.settled = True

        return add_param_group

    def registering(self, original: Any) -> Any:
        def register_parameter(module: Any, name: Any, param: Any, *rest: Any) -> None:
            original(module, name, param, *rest)
            if param is not None:
                self.registered.note(param)
            if self.job.built and param is not None:
                self.born.note(param, self.job.caller(_within_construction))

        return register_parameter

    def loading(self, original: Any) -> Any:
        def load_state_dict(module: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(module, *args, **kwargs)
            for parameter in module.parameters():
                self.loaded.note(parameter)
            return result

        return load_state_dict

    def copying(self, original: Any) -> Any:
        """A copy is made by no constructor."""

        def __deepcopy__(parameter: Any, *args: Any) -> Any:  # noqa: N807 - it is one
            result = original(parameter, *args)
            if self.job.built:
                self.born.note(result, self.job.caller())
            return result

        return __deepcopy__

    def asking(self, original: Any) -> Any:
        """Who asks for a gradient by itself has a use for it: a dummy weight of a penalty stays as it is."""

        def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            for each in inputs if isinstance(inputs, (list, tuple)) else (inputs,):
                if isinstance(each, torch.nn.Parameter):
                    self.asked.note(each)
            return original(outputs, inputs, *args, **kwargs)

        import torch

        return grad

    @property
    def backwards(self) -> int:
        return self.job.clock.count("backwards")

    @property
    def steps(self) -> int:
        return self.job.clock.turns

    def backwarded(self, roots: Any) -> None:
        now = self.backwards
        if now < self.next:
            return
        if self.job.built:
            self.largest = max(map(self.sized, self.job.built), key=lambda each: each[0])[1:]
            self.look(roots)
            self.write()
        self.next = self.following(now)

    def following(self, now: int) -> int:
        """The next power of two, the next 50th, or as far after an orphan was met."""
        far = 1 << (now - self.met).bit_length()
        return min(1 << now.bit_length(), (now // _EVERY + 1) * _EVERY, self.met + far)

    def sized(self, optimizer: Any) -> tuple[int, str, tuple[str, int]]:
        size = sum(len(group["params"]) for group in optimizer.param_groups)
        return size, type(optimizer).__name__, self.job.built.at(optimizer)

    def look(self, roots: Any) -> None:
        for root, name, parameter in [*self.homeless(), *self.free(roots)]:
            born = self.born.of(parameter)
            if self.orphans.of(parameter) is None:
                orphan = _Orphan(parameter, name, root, self.steps, born[0] if born else None)
                self.orphans.note(parameter, orphan)
                if not root:
                    self.made[name] = made_at(self.job, name)
                self.met = self.backwards
                self.turns.follow()
            for orphan in self.orphans.of(parameter) or ():
                orphan.look(self.job, parameter)

    def free(self, roots: Any) -> Iterator[tuple[str, str, Any]]:
        """As homeless, of those that no module has; their root has no name."""
        if not self.owning():
            return
        for name, p in free(self.job, roots):
            known = (self.owned, self.registered, self.loaded, self.asked)
            if p.requires_grad and _plain(p) and not any(noted.of(p) for noted in known):
                yield "", name, p

    def owning(self) -> bool:
        """Whether an optimizer has any parameter of a module that is called, or has those of another module, none of
        which ever gets a gradient: of one that was copied since, for one.
        """
        self.astray = not any(self.owned.of(p) for root in list(self.job.roots) for p in root.parameters())
        if not self.astray:
            return True
        owned = [p for optimizer in self.job.built for group in optimizer.param_groups for p in group["params"]]
        return bool(owned) and all(p.grad is None and self.registered.of(p) for p in owned)

    def homeless(self) -> Iterator[tuple[str, str, Any]]:
        """Class of the root, name, parameter: it has a gradient, learns by its mode, and no optimizer has ever had it.

        Where no optimizer has any parameter of a module, an input is being optimised, and all gradients of modules
        are by the way. What was loaded and never given away serves as it is.
        """
        for root in list(self.job.roots) if self.owning() else ():
            for path, module in root.named_modules():
                for name, p in module._parameters.items() if module.training else ():
                    serves = self.loaded.of(p) and not (self.astray and self.born.of(p))
                    if p is None or self.owned.of(p) or serves:
                        continue
                    if p.requires_grad and _plain(p):
                        yield type(root).__name__, f"{path}.{name}" if path else name, p

    def ending(self) -> None:
        for kept, orphan in self.orphans.values():
            parameter = kept()
            if parameter is not None:
                orphan.compare(self.job, parameter)
        self.write(last=True)

    def write(self, *, last: bool = False) -> None:
        groups: dict[tuple[str, Any], list[str]] = {}
        for _, each in self.orphans.values():
            if not each.settled and each.looks >= _ENOUGH and self.steps - each.steps >= _ENOUGH:
                groups.setdefault((each.root, each.born), []).append(each.name)
        if groups or self.told:
            self.told = True
            told = [self.described(root, born, names) for (root, born), names in groups.items()]
            self.job.record(Unowned(groups=told, backwards=self.backwards, steps=self.steps, last=last))

    def described(self, root: str, born: tuple[str, int] | None, names: list[str]) -> Homeless:
        suspect = self.turns.suspect() if born is None else None
        optimizer, built = self.sized(suspect)[1:] if suspect is not None else self.largest
        path, line = born or built
        module = (_shared(names) or (names[0] if len(names) == 1 else root)) if root else None
        further = [(f"{optimizer} is built here, without them", *built)]
        roots = [each for each in self.job.roots if type(each).__name__ == root]
        further += [(f"{names[0]} comes from here", *self.job.written.made(each, names[0])) for each in roots]
        if not root:
            further += [(f"{names[0]} comes from here", *each) for each in self.made.get(names[0], ())]
        return {
            "root": root,
            "names": names[:_NAMES],
            "count": len(names),
            "module": module,
            "later": born is not None,
            "instead": suspect is not None,
            "optimizer": optimizer,
            "path": path,
            "line": line,
            "further": further,
        }


def _shared(names: list[str]) -> str:
    """The path of the innermost module that holds all parameters of those names."""
    paths = [name.split(".")[:-1] for name in names]
    return ".".join(first[0] for first in takewhile(lambda each: len(set(each)) == 1, zip(*paths, strict=False)))


def _plain(parameter: Any) -> bool:
    """Whether it has a gradient whose values can be looked at without asking other ranks."""
    import torch

    gradient = parameter.grad
    kinds = (torch.Tensor, torch.nn.Parameter)
    if gradient is None or type(parameter) not in kinds or type(gradient) not in kinds:
        return False
    return not gradient.is_sparse and not gradient.is_meta


def _within_construction(frame: Any) -> bool:
    """Whether a frame belongs to a module that is being built: whoever asked for it is of interest."""
    import torch

    return frame.f_code.co_name == "__init__" and isinstance(frame.f_locals.get("self"), torch.nn.Module)
