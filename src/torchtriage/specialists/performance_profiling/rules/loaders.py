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
_ALONE = ("shuffle", "sampler", "drop_last")
_READS = (
    *("Image.open", "cv2.imread", "np.load", "numpy.load", "torchaudio.load", "librosa.load", "imageio.imread"),
    *("read_image", "io.imread", "soundfile.read", "sf.read", "torch.load", "nib.load", "pd.read_csv"),
)


@detector("source/loader-args-invalid")
def loader_args_invalid(script: Script) -> Iterator[Sighting]:
    """A DataLoader is given arguments that exclude each other: it raises ValueError."""
    for call in script.named(_LOADER):
        if _is_open(call) or _is_meant(call):
            continue
        if (why := _contradiction(call)) is not None:
            yield script.seen(call.node, f"{why}: DataLoader raises ValueError")


def _is_open(call: Call) -> bool:
    """Whether *args or **kwargs may bring what is not written here."""
    return any(isinstance(each, ast.Starred) for each in call.node.args) or any(
        keyword.arg is None for keyword in call.node.keywords
    )


def _is_meant(call: Call) -> bool:
    """Whether the error is expected, as by pytest.raises, or caught."""
    for block in call.path:
        if block.kind == "try":
            return True
        if block.kind == "with" and isinstance(block.owner, ast.With | ast.AsyncWith):
            contexts = [item.context_expr for item in block.owner.items]
            if any(isinstance(each, ast.Call) and "aises" in dotted(each.func) for each in contexts):
                return True
    return False


def _given(call: Call, name: str) -> ast.expr | None:
    return call.argument(name, _POSITIONS.index(name) if name in _POSITIONS else None)


def _constant(node: ast.expr | None) -> object:
    """The value of a literal; the node itself for anything else, so that it equals nothing."""
    return node.value if isinstance(node, ast.Constant) else node


def _contradiction(call: Call) -> str | None:
    workers = _given(call, "num_workers")
    if workers is None or _constant(workers) == 0:
        for name, harmless in (("persistent_workers", False), ("prefetch_factor", None)):
            value = _given(call, name)
            if isinstance(value, ast.Constant) and value.value is not harmless:
                return f"{name}={value.value!r} needs workers, and num_workers is 0"
    if _is_true(_given(call, "shuffle")) and _is_something(_given(call, "sampler")):
        return "shuffle=True and a sampler exclude each other"
    if _is_something(_given(call, "batch_sampler")):
        clash = [
            name
            for name in _ALONE
            if _is_true(value := _given(call, name)) or (name == "sampler" and _is_something(value))
        ]
        size = _given(call, "batch_size")
        if isinstance(size, ast.Constant) and size.value not in (1, None):
            clash.insert(0, "batch_size")
        if clash:
            return f"a batch_sampler and {', '.join(clash)} exclude each other"
    return None


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_something(node: ast.expr | None) -> bool:
    """Surely not None: an object that is made here."""
    return isinstance(node, ast.Call) and dotted(node.func)[:1] != ""


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
    return made is not None and any(each.arg == "pin_memory" and _is_true(each.value) for each in made.keywords)


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
    """Before the closing bracket: the bytes of a file that are ASCII up to there are its columns."""
    node = call.node
    if script.text.cells or node.end_lineno is None or node.end_col_offset is None:
        return ()
    at = script.text.start(node.end_lineno) + node.end_col_offset - 1
    if script.text.data[at : at + 1] != b")":
        return ()
    text = ", non_blocking=True" if node.args else "non_blocking=True"
    return (Edit("non-blocking", script.text.path, at, at, text),)
