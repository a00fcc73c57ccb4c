"""Parameters that no module holds: variables of the script, or attributes of an object of its own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchtriage.examine.run.job.job import Job

_LEAVES = 4096  # of a graph: with more, a search for one of them is too dear
_FRAMES = 6  # of the user's code that are looked through


def free(job: Job, roots: Any) -> Iterator[tuple[str, Any]]:
    """Name and parameter: a backward from ROOTS reaches it, a variable in sight is it, no module that ran has it."""
    import torch

    leaves = {id(leaf): leaf for leaf in job.leaves(roots) if type(leaf) is torch.nn.Parameter}
    for root in list(job.roots):
        for parameter in root.parameters():
            leaves.pop(id(parameter), None)
    if not leaves or len(leaves) > _LEAVES:
        return
    for name, value in _variables(job):
        parameter = leaves.pop(id(value), None)
        if parameter is not None:
            yield name, parameter


def made_at(job: Job, name: str) -> list[tuple[str, int]]:
    """Where the file that is running makes what a variable or attribute NAME stands for; nothing where it does not."""
    frame, last = job.frame(), name.rpartition(".")[2]
    if frame is None:
        return []
    for node in ast.walk(job.written.file_of(frame.f_code) or ast.Pass()):
        targets = [getattr(each, "attr", getattr(each, "id", "")) for each in getattr(node, "targets", ())]
        if isinstance(node, ast.Assign) and last in targets and isinstance(node.value, ast.Call):
            return [(str(job.path_of(frame.f_code)), node.lineno)]
    return []


def _variables(job: Job) -> Iterator[tuple[str, Any]]:
    """Those of the user's innermost frames, and the attributes of their selves, and of objects, that are no modules."""
    import torch

    frame = job.frame()
    for _ in range(_FRAMES):
        if frame is None:
            return
        local = frame.f_locals
        owner = local.get("self")
        if owner is not None and not isinstance(owner, torch.nn.Module):
            yield from ((f"self.{name}", value) for name, value in getattr(owner, "__dict__", {}).copy().items())
        seen = [*local.copy().items(), *frame.f_globals.copy().items()]
        yield from seen
        for name, value in seen:  # an object of the script's own classes
            if type(value).__module__ == frame.f_globals.get("__name__") and not isinstance(value, torch.nn.Module):
                held = getattr(value, "__dict__", {}).copy()
                yield from ((f"{name}.{inner}", each) for inner, each in held.items())
        frame = job.frame(frame.f_back) if frame.f_back is not None else None
