"""What the source alone shows about how data are loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.families import UPLOADS

_LOADER = "torch.utils.data.DataLoader"
_POSITIONS = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers")
_READS = (
    *("Image.open", "cv2.imread", "np.load", "numpy.load", "torchaudio.load", "librosa.load", "imageio.imread"),
    *("read_image", "io.imread", "soundfile.read", "sf.read", "torch.load", "nib.load", "pd.read_csv"),
)


@detector("source/worker-count")
def worker_count(step: TrainingStep) -> Iterator[Sighting]:
    """The training loop's DataLoader reads files in the main process: num_workers is 0."""
    for loader in step.loaders():
        made = loader.made
        if made is None or loader.name != _LOADER or any(isinstance(each, ast.Starred) for each in made.args):
            continue
        given = {keyword.arg: keyword.value for keyword in made.keywords}
        given.update(zip(_POSITIONS, made.args, strict=False))
        workers = given.get("num_workers")
        if None in given or (workers is not None and not _is_none(step.script, workers, loader.scope)):
            continue
        dataset = made.args[0] if made.args else next((k.value for k in made.keywords if k.arg == "dataset"), None)
        if loader.scope is not None and (read := _reads(step.script, dataset, loader.scope)) is not None:
            yield step.script.seen(
                made, f"every sample is read by {read.tail}() (line {read.node.lineno}) in the process that trains"
            )


def _is_none(script: Script, workers: ast.expr, scope: Scope | None) -> bool:
    """0 itself, or an entry of a dictionary of the module that says 0 and is never written again."""
    if isinstance(workers, ast.Constant):
        return workers.value == 0
    word, _, key = dotted(workers).partition(".")
    if scope is None or not isinstance(workers, ast.Subscript) or not key:
        return False
    stores = script.names.stores(word, scope)
    changed = any(f"{word}[]" in each.stores or f"{word}.{key}" in each.stores for each in script.facts.scopes)
    if changed or len(stores) != 1 or stores[0].scope.kind != "module" or _is_given_on(script, word):
        return False
    ends = script.trace.origins(workers, scope)
    return bool(ends) and all(isinstance(end.node, ast.Constant) and end.node.value == 0 for end in ends)


def _is_given_on(script: Script, word: str) -> bool:
    """Whether a call may change the dictionary WORD: CONFIG.update(…), parse(CONFIG)."""
    calls = (call for calls in script.facts.calls.values() for call in calls)
    return any(
        (dotted(call.receiver) == word and call.tail not in ("get", "items", "keys", "values", "copy"))
        or (call.tail not in ("print", "dict", "len") and any(dotted(each) == word for each in call.arguments))
        for call in calls
    )


def _reads(script: Script, dataset: ast.expr | None, scope: Scope) -> Call | None:
    """The call by which a dataset of this file reads a file for each sample."""
    own = script.trace.instance(dataset, scope) if dataset is not None else None
    getter = script.trace.method(own, "__getitem__") if own is not None else None
    events = script.written.events(Ring(getter.body, getter)) if getter is not None else ()
    for event, call in ((event, event.call) for event in events if event.call is not None):
        if _is_kept(event, call):
            continue
        if f"{dotted(call.receiver)}.{call.tail}".endswith(_READS) or script.name(call) == "builtins.open":
            return call
    return None


def _is_kept(event: Event, call: Call) -> bool:
    """Whether CALL may run for the first time only: where self is asked first, or behind a cache."""
    scope = call.scope
    marks = getattr(scope.node, "decorator_list", [])
    asked = [block.owner.test for block in event.path if block.kind == "arm" and isinstance(block.owner, ast.If)]
    asked += [
        block.owner.test for each in scope.returns if each.order < call.order
        for block in each.path if block.kind == "arm" and isinstance(block.owner, ast.If)
    ]  # fmt: skip
    asked += [each.test for each in ast.walk(call.statement) if isinstance(each, ast.IfExp)]
    return any("cache" in dotted(each.func if isinstance(each, ast.Call) else each).lower() for each in marks) or any(
        isinstance(node, ast.Name) and node.id == scope.receiver for test in asked for node in ast.walk(test)
    )


@detector("source/pin-memory-blocking")
def pin_memory_blocking(step: TrainingStep) -> Iterator[Sighting]:
    """A batch is copied from pinned memory, and the copy blocks: non_blocking is not given."""
    pinned = [loader for loader in step.loaders() if _pins(loader.made)]
    if not pinned or not step.ring.is_loop:
        return
    for event in step.events:
        call = event.call
        if call is None or call.tail not in UPLOADS:
            continue
        if _is_of_batch(step, call.receiver, call.scope) and _blocks(step.script, call):
            yield step.script.seen(call.node, edits=_unblocked(step.script, call))


def _is_of_batch(step: TrainingStep, node: ast.expr | None, scope: Scope, deep: int = 0) -> bool:
    """Whether NODE is what the step's own loop takes from its loader, or a part of it."""
    if deep > 6:
        return False
    match node:
        case ast.Subscript(value=value) | ast.Call(func=ast.Attribute(value=value, attr="items" | "values"), args=[]):
            return _is_of_batch(step, value, scope, deep + 1)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(_is_of_batch(step, each, scope, deep + 1) for each in parts)
        case ast.Name(id=name):
            run = step.script.facts.bound.get(id(node))
            stores = [run] if run is not None else step.script.names.stores(name, scope)
            return any(_comes_from_batch(step, store, deep + 1) for store in stores)
    return False


def _comes_from_batch(step: TrainingStep, store: Store, deep: int) -> bool:
    if store.how == "element" and store.node is step.ring.block.owner:
        return True
    if store.how == "parameter":
        words = [each.arg for each in store.scope.parameters]
        place = words.index(store.name) - (store.scope.receiver in words[:1])
        sites = (event.call for event in step.events if event.call is not None and event.call.tail == store.scope.name)
        return any(_is_of_batch(step, each.argument(store.name, place), each.scope, deep) for each in sites)
    return store.how in ("assign", "element") and _is_of_batch(step, store.value, store.scope, deep)


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
    if isinstance(goal, ast.Constant) and goal.value == "cpu":
        return False
    return not script.names.resolve(goal, call.scope).startswith("torch.")  # .to(torch.float32) copies nothing


def _unblocked(script: Script, call: Call) -> tuple[Edit, ...]:
    """Before the closing bracket."""
    _, end = script.text.span(call.node)
    text = ", non_blocking=True" if call.node.args else "non_blocking=True"
    return script.change("non-blocking", end - 1, end - 1, text)
