"""What the source alone shows about how data are loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep

_LOADER = "torch.utils.data.DataLoader"
_POSITIONS = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers")
_READS = (
    *("Image.open", "cv2.imread", "np.load", "numpy.load", "torchaudio.load", "librosa.load", "imageio.imread"),
    *("read_image", "io.imread", "soundfile.read", "sf.read", "torch.load", "nib.load", "pd.read_csv"),
)


@detector("source/worker-count")
def worker_count(step: TrainingStep) -> Iterator[Sighting]:
    """The training loop's DataLoader reads files in the main process: num_workers is not given."""
    for loader in step.loaders():
        made = loader.made
        if made is None or loader.name != _LOADER or len(made.args) > _POSITIONS.index("num_workers"):
            continue
        names = {keyword.arg for keyword in made.keywords}
        if names & {"num_workers", None} or any(isinstance(each, ast.Starred) for each in made.args):
            continue
        dataset = made.args[0] if made.args else next((k.value for k in made.keywords if k.arg == "dataset"), None)
        if loader.scope is not None and (read := _reads(step.script, dataset, loader.scope)) is not None:
            yield step.script.seen(
                made, f"every sample is read by {read.tail}() (line {read.node.lineno}) in the process that trains"
            )


def _reads(script: Script, dataset: ast.expr | None, scope: Scope) -> Call | None:
    """The call by which a dataset of this file reads a file for each sample."""
    own = script.trace.instance(dataset, scope) if dataset is not None else None
    getter = script.trace.method(own, "__getitem__") if own is not None else None
    for call in getter.calls if getter is not None else ():
        if f"{dotted(call.receiver)}.{call.tail}".endswith(_READS) or script.name(call) == "builtins.open":
            return call
    return None


@detector("source/pin-memory-blocking")
def pin_memory_blocking(step: TrainingStep) -> Iterator[Sighting]:
    """A batch is copied from pinned memory, and the copy blocks: non_blocking is not given."""
    pinned = [loader for loader in step.loaders() if _pins(loader.made)]
    if not pinned or not step.ring.is_loop:
        return
    owner = step.ring.block.owner
    batch = (
        {each.id for each in ast.walk(owner.target) if isinstance(each, ast.Name)}
        if isinstance(owner, ast.For)
        else set()
    )
    for event in step.events:
        call = event.call
        if call is None or call.scope is not step.ring.scope or call.tail not in ("to", "cuda"):
            continue
        if dotted(call.receiver) in batch and _blocks(step.script, call):
            yield step.script.seen(call.node, edits=_unblocked(step.script, call))


def _pins(made: ast.Call | None) -> bool:
    return made is not None and any(
        each.arg == "pin_memory" and isinstance(each.value, ast.Constant) and each.value.value is True
        for each in made.keywords
    )


def _blocks(script: Script, call: Call) -> bool:
    if any(keyword.arg in ("non_blocking", None) for keyword in call.node.keywords):
        return False
    if call.tail == "cuda":
        return len(call.node.args) <= 1
    if len(call.node.args) != 1:
        return False
    (goal,) = call.node.args
    return not script.names.resolve(goal, call.scope).startswith("torch.")  # .to(torch.float32) copies nothing


def _unblocked(script: Script, call: Call) -> tuple[Edit, ...]:
    """Before the closing bracket."""
    _, end = script.text.span(call.node)
    text = ", non_blocking=True" if call.node.args else "non_blocking=True"
    return script.change("non-blocking", end - 1, end - 1, text)
