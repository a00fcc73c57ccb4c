"""The fingerprints of a training: what the model gets, what its modules give, gradients, parameters after each update,
and the states of the generators between the updates.

Nothing is judged here. The hooks work under a dispatch mode too, so they do not wait for the job's events.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
from typing import TYPE_CHECKING, Any

from ._watch import Watch

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job


def prints(job: Job) -> None:
    """Writes prints<rank>.jsonl, see Sequence; TORCHTRIAGE_REPEAT says what is looked at more closely."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    watch = Watch(job, json.loads(os.environ.get("TORCHTRIAGE_REPEAT") or "{}"))
    _replace(torch.nn.Module, "__call__", functools.partial(_calls, watch, torch.compiler.is_compiling))
    _replace(torch.autograd, "backward", functools.partial(_backwards, watch))
    _replace(_BaseDataLoaderIter, "__next__", functools.partial(_batches, watch))
    register_optimizer_step_pre_hook(lambda optimizer, *_: watch.safely(watch.begin, optimizer))
    register_optimizer_step_post_hook(lambda optimizer, *_: watch.safely(watch.end, optimizer))
    os.register_at_fork(after_in_child=watch.forked)
    atexit.register(watch.ending)
    _replace(os, "_exit", functools.partial(_leaves, watch, os.getpid()))
    watch.safely(watch.look_closer)


def _replace(owner: Any, name: str, make: Any) -> None:
    """For good: who looks at a job twice lets it end afterwards."""
    setattr(owner, name, make(getattr(owner, name)))


def _calls(watch: Watch, compiling: Any, original: Any) -> Any:
    stack = watch.stack

    @functools.wraps(original)
    def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it is one
        if compiling() or watch.idle():
            return original(module, *args, **kwargs)
        if not stack:
            watch.safely(watch.entering, module, args, kwargs)
        stack.append(module)
        try:
            output = original(module, *args, **kwargs)
        finally:
            stack.pop()
        watch.safely(watch.gave, module, output)
        return output

    return __call__


def _backwards(watch: Watch, original: Any) -> Any:
    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> None:
        if watch.off or watch.propagating or watch.compiling():
            original(*args, **kwargs)
            return
        watch.safely(watch.losing, args[0] if args else kwargs.get("tensors"))
        watch.propagating = not watch.idle()
        try:
            original(*args, **kwargs)
        finally:
            watch.propagating = False

    return backward


def _leaves(watch: Watch, process: int, original: Any) -> Any:
    """A job may leave without the end of the interpreter; so do the children that it has forked, which are others."""

    @functools.wraps(original)
    def _exit(status: int) -> Any:
        if os.getpid() == process:
            watch.safely(watch.ending)
        return original(status)

    return _exit


def _batches(watch: Watch, original: Any) -> Any:
    @functools.wraps(original)
    def __next__(iterator: Any) -> Any:  # noqa: N807 - it is one
        batch = original(iterator)
        if not watch.idle():
            watch.safely(watch.got, batch, getattr(iterator, "_num_workers", 0))
        return batch

    return __next__
