"""What an execution of the program shows about how data are loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import Function, Object, Value
from torchtriage.examine.source.facts import dotted
from torchtriage.examine.source.nodes import nodes_in
from torchtriage.examine.source.script import Script

_LOADER = "torch.utils.data.DataLoader"
_READS = (
    *("Image.open", "cv2.imread", "np.load", "numpy.load", "torchaudio.load", "librosa.load", "imageio.imread"),
    *("read_image", "io.imread", "soundfile.read", "sf.read", "torch.load", "nib.load", "pd.read_csv"),
)


@detector("source/worker-count")
def worker_count(trainings: Trainings) -> Iterator[Sighting]:
    """The training loop's DataLoader reads files in the main process: num_workers is 0."""

    def find(training: Training) -> Facts:
        for made in training.of(events.Made):
            loader = made.made
            if loader.made != _LOADER or id(loader) not in training.trained_loaders or loader.keywords.get("**"):
                continue
            read = _read(loader.argument("dataset", 0)) if loader.argument("num_workers", 5, 0) == 0 else None
            if read is not None:
                name = dotted(read.func).rpartition(".")[2]
                yield made.spot, f"every sample is read by {name}() (line {read.lineno}) in the process that trains"

    yield from certain(trainings, find)


def _read(dataset: Value) -> ast.Call | None:
    """The call by which DATASET, or what it is a part of, reads a file for each sample."""
    if not isinstance(dataset, Object):
        return None
    waiting = [dataset.method("__getitem__")]
    seen = set[int]()
    while waiting:
        function = waiting.pop()
        if function is None or id(function.node) in seen or isinstance(function.node, ast.Lambda):
            continue
        seen.add(id(function.node))
        for call in (each for each in ast.walk(function.node) if isinstance(each, ast.Call)):
            if _is_kept(function.node, call):
                continue
            name = dotted(call.func)
            if name.endswith(_READS) or name == "open":
                return call
            waiting.append(_called(dataset, function, call))
    parts = (_read(each) for each in (*dataset.arguments[:1], *dataset.keywords.values()) if not dataset.cls)
    return next((each for each in parts if each is not None), None)


def _called(dataset: Object, function: Function, call: ast.Call) -> Function | None:
    """The function of the project that CALL in FUNCTION, a method of DATASET, calls; None for others."""
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "self":
        return dataset.method(call.func.attr)
    found = function.frame.file.values.get(call.func.id) if isinstance(call.func, ast.Name) else None
    return found if isinstance(found, Function) else None


def _is_kept(function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call) -> bool:
    """Whether CALL in FUNCTION may run for the first time only: where self is asked first, or behind a cache."""
    if any("cache" in ast.unparse(each).lower() for each in function.decorator_list):
        return True
    receiver = function.args.args[0].arg if function.args.args else ""
    for test in (each for each in ast.walk(function) if isinstance(each, ast.If | ast.IfExp)):
        asks = any(isinstance(each, ast.Name) and each.id == receiver for each in ast.walk(test.test))
        arms = [test.body, test.orelse] if isinstance(test, ast.IfExp) else [*test.body, *test.orelse]
        is_within = any(id(call) in nodes_in(arm) for arm in arms)
        is_behind = isinstance(test, ast.If) and isinstance(test.body[-1], ast.Return) and call.lineno > test.lineno
        if asks and (is_within or is_behind):
            return True
    return False


@detector("source/pin-memory-blocking")
def pin_memory_blocking(trainings: Trainings) -> Iterator[Sighting]:
    """A batch is copied from pinned memory, and the copy blocks: non_blocking is not given."""

    def find(training: Training) -> Facts:
        for upload in training.of(events.Upload):
            is_pinned = upload.loader.argument("pin_memory", 7, False) is True
            if is_pinned and not upload.says_how and id(upload.loader) in training.trained_loaders:
                yield upload.spot, "", _unblock

    yield from certain(trainings, find, where_reached=True)


def _unblock(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """Before the closing bracket."""
    if not isinstance(node, ast.Call):
        return ()
    _, end = script.text.span(node)
    text = ", non_blocking=True" if node.args else "non_blocking=True"
    return script.change("non-blocking", end - 1, end - 1, text)
