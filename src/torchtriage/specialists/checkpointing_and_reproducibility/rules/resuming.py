"""What the source alone shows about saving, resuming and repeating."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.catalog.load import catalog
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.resume import Resume

# Beginnings of words in the names around the load.
_RESUMING = ("resum", "checkpoint", "ckpt", "chkpt", "latest", "last", "snapshot", "restart")
_TUNING = (
    *("pretrain", "finetun", "fine", "backbone", "teacher", "imagenet", "transfer", "warm"),
    *("best", "eval", "test", "infer", "predict"),
)


@detector("source/checkpoint-incomplete")
def checkpoint_incomplete(resume: Resume) -> Iterator[Sighting]:
    """A training resumes from a checkpoint without all of its state."""
    if resume.script.hidden or not resume.saves or resume.partial or "?" in resume.restored:
        return
    if _says(resume, _TUNING) or not (resume.is_own or _says(resume, _RESUMING)) or not resume.is_kept:
        return
    needed = frozenset(_needed(resume)) - resume.restored
    parts = [part for part in catalog().components.values() if part.role in needed]
    missing = [f"{part.title} (saved, never loaded)" if resume.saved(part.role) else part.title for part in parts]
    if "optimizer" not in needed and _has_another(resume):
        missing.insert(0, "the other optimizer's state")
    if missing:
        yield resume.script.seen(
            resume.load.node,
            f"the training goes on from here with its weights, but {_listed(missing)} "
            f"{'start' if len(missing) > 1 else 'starts'} anew",
        )


def _has_another(resume: Resume) -> bool:
    """Whether one of several optimizers of the loop is left out while the others are loaded."""
    roles, script = resume.script.roles, resume.script
    loaded = [roles.parts(call.receiver, call.scope) for call in script.calls("load_state_dict")]
    known = {id(part.made) for parts in loaded for part in parts if part.role == "optimizer" and part.made is not None}
    if not known or any(not parts or any(p.role == "optimizer" and p.made is None for p in parts) for parts in loaded):
        return False
    outer = resume.step.around[-1] if resume.step.around else resume.step.ring
    steps = [
        event.call for event in script.written.events(outer) if event.call is not None and event.call.tail == "step"
    ]
    parts = [part for call in steps for part in roles.parts(call.receiver, call.scope) if part.role == "optimizer"]
    stateful = [part for part in parts if part.made is not None and not _is_plain_sgd(part.made, part.name)]
    return any(id(part.made) not in known for part in stateful)


def _says(resume: Resume, beginnings: tuple[str, ...]) -> bool:
    """Whether a word around the load begins so; the name of the function that trains tells nothing of the file."""
    words, scope = resume.words, resume.load.scope
    if scope is resume.step.ring.scope and scope.name.lower().startswith("pretrain"):
        words = words.removeprefix(scope.name.lower())
    return any(word.startswith(beginnings) for word in re.findall("[a-z]+", words))


def _needed(resume: Resume) -> Iterator[str]:
    """The roles in this training that have a state of their own. Plain SGD has none."""
    step = resume.step
    if any(not _is_plain_sgd(part.made, part.name) for _, _, parts in step.optimizing() for part in parts):
        yield "optimizer"
    roles = resume.script.roles
    used = [part for call in resume.script.calls("step") for part in roles.parts(call.receiver, call.scope)]
    if any(part.role == "scheduler" for part in used):
        yield "scheduler"
    if any(part.role == "scaler" and _is_enabled(part.made) for part in used):
        yield "scaler"
    yield "epoch"


def _is_enabled(scaler: ast.Call | None) -> bool:
    """Surely: GradScaler(enabled=use_amp) may have no state at all."""
    return scaler is not None and not any(keyword.arg in ("enabled", "init_scale", None) for keyword in scaler.keywords)


def _is_plain_sgd(made: ast.Call | None, name: str) -> bool:
    return (
        made is not None and name == "torch.optim.SGD" and not any(k.arg in ("momentum", None) for k in made.keywords)
    )


def _listed(missing: list[str]) -> str:
    return missing[0] if len(missing) == 1 else f"{', '.join(missing[:-1])} and {missing[-1]}"
