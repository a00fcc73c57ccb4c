"""The tensors that an optimizer moves, and those beside them that a wrapper holds: what ranks can compare."""

from __future__ import annotations

import weakref
import zlib
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import Replicas

from . import _bits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchtriage.examine.run.job.job import Job

MOST = 256  # tensors of one optimizer; of more, as many, evenly chosen
PREFIXES = ("module.", "_orig_mod.", "_fsdp_wrapped_module.", "_forward_module.")
NORMS = "_NormBase"
_COUNTED = ("running", "moving", "num_batches", "ema", "momentum")  # in names of buffers that a forward pass moves


class Wrapper:
    """A DistributedDataParallel, the ranks that it averages over, and the line that made it."""

    def __init__(self, made: Any, where: tuple[str, int]) -> None:
        from torch import distributed

        self.itself, self.where = weakref.ref(made), where
        self.ranks = sorted(distributed.get_process_group_ranks(made.process_group))
        ignored = set(getattr(made, "parameters_to_ignore", ()))
        self.parameters, self.ignored = set[int](), set[int]()
        for name, each in made.module.named_parameters():
            (self.ignored if name in ignored else self.parameters).add(id(each))

    def now(self) -> set[int]:
        """The parameters that the wrapped module has by now."""
        made = self.itself()
        return {id(each) for each in made.module.parameters()} if made is not None else set()

    def names(self) -> dict[int, str]:
        """By identity, what the wrapped module calls its tensors: the same on all ranks, whatever else ran there."""
        made = self.itself()
        named = (*made.module.named_parameters(), *made.module.named_buffers()) if made is not None else ()
        return {id(each): _plain(name) for name, each in named}

    @property
    def joins(self) -> bool:
        """Whether ranks may have different numbers of batches now: then their updates are not the same ones."""
        return bool(getattr(getattr(self.itself(), "_join_config", None), "enable", False))

    @property
    def hooks(self) -> list[str]:
        """The names of the functions that exchange the gradients in its stead."""
        made = self.itself()
        hooks = getattr(made, "_comm_hooks", ())
        return [getattr(each[0], "__name__", type(each[0]).__name__) for each in hooks]


class Tracked:
    """What is compared of one optimizer. kinds: p a parameter that it moves, o one that it moves and no wrapper has
    where there is one, f one of the wrapper's that it does not move, b a buffer that nobody sends round.

    left: how many parameters are left out, since every rank has a share of its own of them, or none to look at.
    unknown: they are in a wrapped module, and its wrapper has none of them: they were replaced after it was made.
    """

    def __init__(self, job: Job, optimizer: Any, wrappers: Sequence[Wrapper]) -> None:
        moved = [each for group in optimizer.param_groups for each in group["params"]]
        owners = {id(each) for each in moved}
        known = [each for each in wrappers if each.itself() is not None and owners & each.parameters]
        around = known or [each for each in wrappers if owners & each.now()]
        self.wrapper, self.unknown = (around[0] if around else None), bool(around) and not known
        ignored = {each for wrapper in known for each in wrapper.ignored}
        within = {each for wrapper in known for each in wrapper.parameters} or owners
        own = [("p" if id(each) in within else "o", each) for each in moved if id(each) not in ignored]
        beside = [*_frozen(self.wrapper, owners), *_buffers(job, self.wrapper, owners)]
        kept = [(kind, each) for kind, each in [*own, *beside] if _bits.plain(each)]
        self.left = len(moved) - sum(kind in "po" for kind, _ in kept)
        chosen = _chosen(kept)
        self.kinds = "".join(kind for kind, _ in chosen)
        self.tensors = [weakref.ref(each) for _, each in chosen]
        own_names = self.wrapper.names() if self.wrapper is not None else {}
        self.names = [own_names.get(id(each)) or _name(job, each, at) for at, (_, each) in enumerate(chosen)]
        self.sizes = [each.numel() for _, each in chosen]
        self.writes = [_version(each) for _, each in chosen]
        self.moved = sum(size for size, kind in zip(self.sizes, self.kinds, strict=True) if kind in "po")
        shapes = [(name, list(each.shape)) for name, (_, each) in zip(self.names, chosen, strict=True)]
        self.key = zlib.crc32(repr(shapes).encode())

    def alive(self) -> list[Any] | None:
        """The tensors; None when one of them is gone."""
        found = [each() for each in self.tensors]
        return None if not found or any(each is None for each in found) else found

    def moving(self) -> list[Any]:
        """Those that the optimizer moves."""
        found = [each() for each, kind in zip(self.tensors, self.kinds, strict=True) if kind in "po"]
        return [each for each in found if each is not None]

    def written(self) -> list[int]:
        """How many times each tensor has been written in place since it was first seen."""
        found = [each() for each in self.tensors]
        return [
            _version(each) - before if each is not None else 0 for each, before in zip(found, self.writes, strict=True)
        ]

    def replicas(self, job: Job, optimizer: Any, number: int, turn: int) -> Replicas:
        """What is true as long as these are the tensors of OPTIMIZER, which has that NUMBER, from that TURN on."""
        wrapper = self.wrapper
        made = wrapper.itself() if wrapper is not None else None
        replicas = Replicas(
            optimizer=number,
            turn=turn,
            class_=type(optimizer).__name__,
            built=job.built.at(optimizer),
            key=self.key,
            names=self.names,
            sizes=self.sizes,
            kinds=self.kinds,
            left=self.left,
            name=type(made.module).__name__ if made is not None else self.owner(job),
        )
        if wrapper is not None:
            replicas.over, replicas.hooks = wrapper.ranks, wrapper.hooks
            replicas.made, replicas.unknown = wrapper.where, self.unknown
        return replicas

    def owner(self, job: Job) -> str:
        """The class of the module that holds the first of them, as far as it has run."""
        mine = {id(each) for each in self.moving()}
        holders = (each for each in job.roots if any(id(inner) in mine for inner in each.parameters()))
        found = next(holders, None)
        return type(found).__name__ if found is not None else "the job"


def _frozen(wrapper: Wrapper | None, owners: set[int]) -> Iterator[tuple[str, Any]]:
    made = wrapper.itself() if wrapper is not None else None
    if wrapper is not None and made is not None:
        for each in made.module.parameters():
            if id(each) not in owners and not each.requires_grad and id(each) in wrapper.parameters:
                yield "f", each


def _buffers(job: Job, wrapper: Wrapper | None, owners: set[int]) -> Iterator[tuple[str, Any]]:
    """Persistent buffers that nobody sends round, and that are no statistics of batches."""
    made = wrapper.itself() if wrapper is not None else None
    if made is not None:
        broadcast = getattr(made, "broadcast_buffers", getattr(made, "forward_sync_buffers", True))
        roots = [] if broadcast else [made.module]
    else:
        roots = [root for root in job.roots if owners & {id(each) for each in root.parameters()}]
    for root in roots:
        for module in root.modules():
            if any(kind.__name__ == NORMS for kind in type(module).__mro__):
                continue
            for name, each in module._buffers.items():
                counted = any(word in name.lower() for word in _COUNTED)
                if each is not None and each.is_floating_point() and name in _kept(module) and not counted:
                    yield "b", each


def _kept(module: Any) -> set[str]:
    return set(module._buffers) - set(module._non_persistent_buffers_set)


def _chosen(kept: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    if len(kept) <= MOST:
        return kept
    return [kept[number * len(kept) // MOST] for number in range(MOST)]


def _name(job: Job, tensor: Any, number: int) -> str:
    return _plain(job.module_name(tensor) or _buffer_name(job, tensor) or f"tensor {number}")


def _plain(name: str) -> str:
    """NAME without what wrappers put before it."""
    while (prefix := next((each for each in PREFIXES if name.startswith(each)), "")) != "":
        name = name[len(prefix) :]
    return name


def _buffer_name(job: Job, tensor: Any) -> str | None:
    return next((name for root in job.roots for name, each in root.named_buffers() if each is tensor), None)


def _version(tensor: Any) -> int:
    """How often TENSOR has been written in place; fused optimizers do not count."""
    try:
        return int(tensor._version)
    except RuntimeError:  # made in inference mode, which does not count
        return 0
