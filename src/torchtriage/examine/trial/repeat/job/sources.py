"""What a repetition notes about seeds, and what a leg that tries an explanation holds still in torch and NumPy."""

from __future__ import annotations

import functools
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .events import Conditions

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job


def sources(job: Job) -> None:
    """Seeds that are given, generators that are made without one; TORCHTRIAGE_FIXED names what is held still."""
    import torch

    early = getattr(sys.modules.get("_torchtriage_early"), "asking", None)
    if early is None:
        return
    wants = frozenset(os.environ.get("TORCHTRIAGE_FIXED", "").split())
    for name in ("manual_seed", "seed"):
        for owner in (torch, torch.random):
            _put(owner, name, functools.partial(_seeded, early, wants, "torch", torch.manual_seed))
    numpy: Any = None
    with suppress(ImportError):  # as the job would at the first draw: NumPy loads it late
        numpy = import_module("numpy.random") if "numpy" in sys.modules or "seeds" in wants else None
    if numpy is not None:
        _put(numpy, "seed", functools.partial(_seeded, early, wants, "numpy", numpy.seed))
        _put(numpy, "default_rng", functools.partial(_made, early, wants, "numpy.random.default_rng"))
    _hold(torch, numpy, wants)
    job.record(_conditions(torch))


def _conditions(torch: Any) -> Conditions:
    return Conditions(
        threads=torch.get_num_threads(),
        hash=bool(sys.flags.hash_randomization and not os.environ.get("PYTHONHASHSEED", "").isdigit()),
        cuda=torch.cuda.is_available(),
    )


def _hold(torch: Any, numpy: Any, wants: frozenset[str]) -> None:
    if "seeds" in wants:
        torch.Generator = _still(torch.Generator)
        torch.manual_seed(0)
        if numpy is not None:
            numpy.seed(0)
    if "threads" in wants:
        torch.set_num_threads(1)
        torch.set_num_threads = lambda _number: None
    if "deterministic" in wants:
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.deterministic = True
    if {"deterministic", "benchmark"} & wants:
        torch.backends.cudnn.benchmark = False
    if "workers" in wants:
        _put(torch.utils.data.DataLoader, "__init__", _without_workers)


def _still(kind: Any) -> Any:
    """A generator whose seed is never drawn."""

    class Generator(kind):  # type: ignore[misc]
        def seed(self) -> int:
            self.manual_seed(0)
            return 0

    return Generator


def _without_workers(original: Any) -> Any:
    gone = ("persistent_workers", "prefetch_factor", "timeout", "multiprocessing_context", "worker_init_fn")

    def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
        kwargs = {name: value for name, value in kwargs.items() if name not in gone}
        original(loader, *args[:5], **{**kwargs, "num_workers": 0})

    return __init__


def _put(owner: Any, name: str, make: Any) -> None:
    own = getattr(owner, name)
    setattr(owner, name, functools.wraps(own)(make(own)))


def _seeded(early: Any, wants: frozenset[str], source: str, fix: Any, original: Any) -> Any:
    def seed(*args: Any, **kwargs: Any) -> Any:
        given = next(iter([*args, *kwargs.values()]), None)
        if given is None:
            early.note(f"{source} without a seed", sys._getframe(1))
            if "seeds" in wants:
                return fix(0)
        else:
            early.note("seed", sys._getframe(1), of=source, value=repr(given)[:80])
        return original(*args, **kwargs)

    return seed


def _made(early: Any, wants: frozenset[str], what: str, original: Any) -> Any:
    def make(seed: Any = None) -> Any:
        if seed is None:
            early.note(f"{what} without a seed", sys._getframe(1))
            seed = 0 if "seeds" in wants else None
        return original(seed)

    return make
