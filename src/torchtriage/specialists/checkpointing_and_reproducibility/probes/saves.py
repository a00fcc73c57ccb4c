"""What a run writes down about files of weights: tensors in them that are empty, or zero, and in the model are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import Hollow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchtriage.examine.run.job.job import Job

_PREFIXES = ("module.", "_orig_mod.")
_SAME = 0.8  # of the names of a dictionary, at least, are those of a model: it is that model's state
_SAVES = 8  # files that are looked into
_NAMED = 4
_DEPTH = 2


def saves(job: Job) -> None:
    """Weights that are saved hollow: with no numbers, or zeros only, where the model that ran has others."""
    import torch

    watch = _Saves(job)
    job.wrap(torch, "save", watch.saving)
    job.listen(watch.forwarded)


class _Saves:
    """The sizes that parameters had when the model ran: those that are sharded have none in between."""

    def __init__(self, job: Job) -> None:
        import torch

        self.job, self.plain = job, (torch.Tensor, torch.nn.Parameter)
        self.sizes: dict[int, dict[str, int]] = {}
        self.left = _SAVES

    def forwarded(self, module: Any, _output: Any) -> None:
        if id(module) not in self.sizes:
            self.sizes[id(module)] = {_short(name): each.numel() for name, each in module.named_parameters()}

    def saving(self, original: Any) -> Any:
        def save(obj: Any, *args: Any, **kwargs: Any) -> Any:
            if self.left and self.sizes:
                self.left -= 1
                self.look(obj)
            return original(obj, *args, **kwargs)

        return save

    def look(self, obj: Any) -> None:
        for state in _states(obj, self.plain):
            for root in self.job.roots:
                self.compare(state, root)

    def compare(self, state: dict[str, Any], root: Any) -> None:
        """STATE with what the model holds, if it is that model's."""
        sizes, live = self.sizes.get(id(root), {}), {_short(name): each for name, each in root.named_parameters()}
        saved = {_short(name): each for name, each in state.items() if type(each) in self.plain}
        known = saved.keys() & sizes.keys()
        if not known or len(known) < _SAME * len(sizes):
            return
        empty = [name for name in sizes if name in known and not saved[name].numel() and sizes[name]]
        zero = [name for name in sizes if name in known - set(empty) and self.zeroed(saved[name], live.get(name))]
        if empty or zero:
            path, line = self.job.caller()
            names = [*empty, *zero]
            event = Hollow(
                model=type(root).__name__, names=names[:_NAMED], empty=len(empty), zero=len(zero), of=len(sizes),
                numbers=sum(sizes[name] for name in names), path=path, line=line,
            )  # fmt: skip
            self.job.record(event)

    def zeroed(self, saved: Any, live: Any) -> bool:
        if live is None or type(live) not in self.plain or live.is_meta or saved.is_meta or live.shape != saved.shape:
            return False
        return not bool(saved.any()) and bool(live.any())


def _short(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.replace(prefix, "")
    return name


def _states(obj: Any, plain: tuple[type, ...], depth: int = _DEPTH) -> Iterator[dict[str, Any]]:
    """OBJ and what is in it, as far as these are dictionaries with tensors in them."""
    if not isinstance(obj, dict):
        return
    if any(type(each) in plain for each in obj.values()):
        yield obj
    elif depth:
        for each in obj.values():
            yield from _states(each, plain, depth - 1)
