"""What the source alone shows about datasets that are read by several worker processes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.loaded import LoadedDataset, Read
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.trace import Origin

_GENERATORS = frozenset(
    {"numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator", "random.Random"}
    | {"torch.Generator"}
)
_COMPOSED = ("Compose", "RandomApply", "RandomChoice", "RandomOrder", "OneOf", "Sequential")
_SEEDS = ("seed", "manual_seed", "set_state", "setstate", "jumped", "advance")
_SPLIT = re.compile(r"worker|rank|world|num_?replicas|num_?shards|n_?shards|shard_?(id|idx|index|num|count)")

_RANKS = re.compile(
    r"^(self_|my_|local_|global_|ddp_|dist_|n_|num_)?(rank|ranks|world|world_?size|num_?replicas|get_rank|get_world_size)$"
)
_OTHERS = re.compile(r"worker|shard_?(id|idx|index|num|count)|num_?shards|n_?shards|split_by")

# What lists are called whose elements every worker that runs over them gets.
_LISTED = re.compile(
    r"(files|file_?names|file_?list|paths|documents|docs|texts|lines|items|records|sentences|rows|examples|articles)$"
    r"|(episodes|indices|pairs|tracks|clips|sequences|urls|images)$"
)

# What reads data that is there, so that every worker that runs it reads the same.
_OPENS = frozenset(
    {"builtins.open", "builtins.range", "gzip.open", "bz2.open", "lzma.open", "io.open", "tarfile.open"}
    | {"zipfile.ZipFile", "numpy.load", "numpy.memmap", "torch.load", "h5py.File", "csv.reader", "csv.DictReader"}
    | {"json.load", "PIL.Image.open", "cv2.VideoCapture", "cv2.imread", "sqlite3.connect", "glob.glob", "glob.iglob"}
    | {"os.listdir", "os.walk", "os.scandir", "pyarrow.parquet.ParquetFile", "pyarrow.parquet.read_table"}
    | {f"pandas.read_{kind}" for kind in ("csv", "parquet", "json", "table", "feather", "pickle", "sql")}
)
_ORDERS = ("torch.randperm", "torch.arange", "numpy.arange", "numpy.random.permutation")
_ELSEWHERE = (
    "datasets",
    "webdataset",
    "torchdata",
    "streaming",
    "litdata",
    "ffcv",
    "tensorflow",
    "tensorflow_datasets",
)


@detector("source/dataset-owned-rng")
def dataset_owned_rng(dataset: LoadedDataset) -> Iterator[Sighting]:
    """A random generator that belongs to the dataset draws the same numbers in every worker."""
    script = dataset.script
    if not any(script.named(*_GENERATORS)):
        return
    method = dataset.method("__getitem__", "__getitems__", "__iter__")
    read = next((each for each in dataset.reads if each.workers != 1 or not each.lasts), None)
    if method is None or read is None or _is_copied_by_hand(dataset):
        return
    for made, name, owner in _drawn_from(script, method):
        if not _is_seeded_later(script, owner or dataset.scope, name):
            yield script.seen(made, _copies(name, read))
            return


def _copies(name: str, read: Read) -> str:
    line, what = read.loader.node.lineno, name or "this generator"
    if read.workers == 1:
        return f"{what} goes into the worker of line {line} as a copy: every epoch draws the numbers of the first"
    count = f"each of the {read.workers}" if read.workers else "each of the"
    again = "" if read.lasts else ", and again in every epoch"
    return f"{what} goes into {count} workers of line {line} as a copy: all draw the same numbers{again}"


def _drawn_from(
    script: Script, method: Scope, owner: Scope | None = None, deep: int = 0
) -> Iterator[tuple[ast.Call, str, Scope | None]]:
    """The generators made elsewhere that METHOD, and what it calls in this file, draws from; their names and owners."""
    events = script.written.events(Ring(method.body, method))
    yield from _drawn_by_parts(script, events, deep)
    inside = {id(method), *(id(event.fact.scope) for event in events)}
    for call in (event.call for event in events if event.call is not None):
        for node in (call.receiver, *call.arguments) if script.name(call) not in _GENERATORS else ():
            if not isinstance(node, ast.Attribute | ast.Name):
                continue
            for origin in script.trace.origins(node, call.scope):
                made = _generator(script, origin)
                if made is not None and origin.store is not None and id(origin.scope) not in inside:
                    called = call.scope.host if call.scope.name == "__call__" else None  # a part of the dataset
                    yield made, dotted(node), called or owner


def _drawn_by_parts(
    script: Script, events: tuple[Event, ...], deep: int
) -> Iterator[tuple[ast.Call, str, Scope | None]]:
    """What the objects draw from that the dataset holds and calls: self.transform(x)."""
    for call in (event.call for event in events if event.call is not None):
        part = call.node.func
        if deep > 2 or not dotted(part) or script.name(call):
            continue
        for own in _called(script, part, call.scope):
            called = script.trace.method(own, "__call__")
            if called is not None:
                yield from _drawn_from(script, called, own, deep + 1)


def _called(script: Script, node: ast.expr, scope: Scope, deep: int = 0) -> Iterator[Scope]:
    """The classes of this file whose instances NODE may be, also as parts of a torchvision Compose."""
    for origin in script.trace.origins(node, scope):
        if origin.call is None or origin.node is None:
            continue
        own = script.trace.definition(origin.call.func, origin.scope)
        if own is not None and own.kind == "class":
            yield own
        elif deep < 2 and dotted(origin.call.func).rpartition(".")[2] in _COMPOSED:
            for given in origin.call.args[:1]:
                lists = [each.node for each in script.trace.origins(given, origin.scope)]
                parts = (part for each in lists if isinstance(each, ast.List | ast.Tuple) for part in each.elts)
                yield from (own for part in parts for own in _called(script, part, origin.scope, deep + 1))


def _generator(script: Script, origin: Origin) -> ast.Call | None:
    """The constructor of the generator that ORIGIN is: also in torch.Generator().manual_seed(0)."""
    call = origin.call
    if call is not None and script.names.resolve(call.func, origin.scope) in _GENERATORS:
        return call
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="manual_seed")):
            return inner if script.names.resolve(inner.func, origin.scope) in _GENERATORS else None
    return None


def _is_copied_by_hand(dataset: LoadedDataset) -> bool:
    return dataset.method("__getstate__", "__setstate__", "__reduce__") is not None


def _is_seeded_later(script: Script, host: Scope, name: str) -> bool:
    """Whether something but __init__ sets the generator or its seed: per epoch, per worker or per sample."""
    ending, family = f".{name.rpartition('.')[2]}", script.trace.lineage(host)
    for scope in script.facts.scopes:
        for store in (store for stores in scope.stores.values() for store in stores):
            if (store.name.endswith(ending) or f"{ending}." in store.name) and _is_later(store, store.name, family):
                return True
    return any(
        f".{dotted(call.receiver)}".endswith(ending) and _is_later(call, dotted(call.receiver), family)
        for call in script.calls(*_SEEDS)
    )


def _is_later(at: Store | Call, name: str, family: list[Scope]) -> bool:
    """Whether it is done outside of __init__, and not by another class to itself."""
    own = at.scope.host is not None and name.startswith(f"{at.scope.receiver}.")
    return at.scope.host in family and at.scope.name != "__init__" if own else "." in name


@detector("source/iterable-not-sharded")
def iterable_not_sharded(dataset: LoadedDataset) -> Iterator[Sighting]:
    """An IterableDataset gives every sample once for each worker."""
    script, method = dataset.script, dataset.method("__iter__")
    read = next((each for each in dataset.reads if each.workers != 1), None)
    if not dataset.is_iterable or method is None or read is None:
        return
    if any(name.partition(".")[0] in _ELSEWHERE for name in script.facts.imports) or _shares(script, dataset):
        return
    if _is_endless(method) or not _reads_all(script, method):
        return
    count = f"{read.workers} workers" if read.workers else "workers"
    ranks = "the ranks share out the data, and then " if _is_split(script, dataset, _RANKS) else ""
    yield script.seen(
        method.node,
        f"{ranks}this runs from its beginning in each of the {count} of the loader in line {read.loader.node.lineno}: "
        f"an epoch holds every sample {f'{read.workers} times' if read.workers else 'once for each of them'}",
    )


def _shares(script: Script, dataset: LoadedDataset) -> bool:
    """Whether the workers may share out the samples: the class speaks of them, or takes every n-th of something.

    Where it speaks of ranks alone, what it takes is the part of a rank, of which every worker gets all.
    """
    if _is_split(script, dataset, _RANKS) and script.trace.is_whole(dataset.scope):
        return _is_split(script, dataset, _OTHERS)
    return _is_split(script, dataset, _SPLIT) or _takes_parts(script, dataset)


def _is_split(script: Script, dataset: LoadedDataset, words: re.Pattern[str]) -> bool:
    """Whether anything in the class is named by one of these WORDS."""
    for each in script.trace.lineage(dataset.scope):
        for node in ast.walk(each.node):
            word = getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "arg", None)
            if isinstance(word, str) and words.search(word.lower()):
                return True
    return False


def _takes_parts(script: Script, dataset: LoadedDataset) -> bool:
    for each in script.trace.lineage(dataset.scope):
        for node in ast.walk(each.node):
            if isinstance(node, ast.Mod) or (isinstance(node, ast.Slice) and node.step is not None):
                return True
            if isinstance(node, ast.Call) and dotted(node.func).endswith("islice") and len(node.args) > 2:
                return True
    return False


def _is_endless(method: Scope) -> bool:
    """A stream without end has no epoch in which a sample could come twice."""
    for node in ast.walk(method.node):
        if isinstance(node, ast.While) and isinstance(node.test, ast.Constant):
            return True
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("cycle", "count", "repeat"):
            return True
    return False


def _reads_all(script: Script, method: Scope) -> bool:
    """Whether what it goes through is surely data that is there: files, lists, ranges; not samples that it draws."""
    events = script.written.events(Ring(method.body, method))
    names = [script.name(event.call) for event in events if event.call is not None]
    drawn = any(_draws(name) for name in names)
    opened = [name for name in names if name in _OPENS]
    if any(name != "builtins.range" for name in opened) or any(_opens_path(event) for event in events):
        return True
    scopes = {id(scope): scope for scope in (method, *(event.fact.scope for event in events))}.values()
    gone = [(node, scope) for scope in scopes for node in _gone_through(scope)]
    if any(_is_listed(script, node, scope) for node, scope in gone):
        return True
    return not drawn and (bool(opened) or any(_is_there(script, node, scope) for node, scope in gone))


def _is_listed(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Whether NODE is a list that the object was given, whose elements are the samples or lead to them."""
    if not dotted(node).startswith(f"{scope.receiver}.") or not scope.receiver:
        return False
    listed = bool(_LISTED.search(dotted(node).lower()))
    given = False
    for origin in script.trace.origins(node, scope):
        match origin.node:
            case ast.List() | ast.ListComp():
                given = True
            case ast.Subscript(slice=ast.Slice()):
                given = given or listed
            case ast.Call(func=called) if script.names.resolve(called, origin.scope) in (
                "builtins.list",
                "builtins.sorted",
            ):
                given = True
            case _:
                given = given or (origin.is_parameter and listed)
    return given


def _draws(name: str) -> bool:
    words = name.rpartition(".")
    random = words[0] in ("random", "numpy.random", "torch") and name.startswith(
        ("random.", "numpy.random.", "torch.rand", "torch.normal", "torch.multinomial")
    )
    return random and words[2] not in ("shuffle", "permutation", "randperm", "seed")


def _opens_path(event: Event) -> bool:
    call: Call | None = event.call
    return call is not None and call.receiver is not None and call.tail in ("iterdir", "rglob", "readlines")


def _gone_through(scope: Scope) -> Iterator[ast.expr]:
    for each in ast.walk(scope.node):
        if isinstance(each, ast.For | ast.comprehension):
            yield each.iter
        elif isinstance(each, ast.YieldFrom | ast.Return) and each.value is not None:
            yield each.value


def _is_there(script: Script, node: ast.expr, scope: Scope, deep: int = 0) -> bool:
    """A list, or an object that this file makes by reading or counting; through iter, enumerate, map and the like."""
    for origin in script.trace.origins(node, scope):
        match origin.node:
            case ast.List() | ast.ListComp() | ast.Dict():
                return True
            case ast.Call(func=called, args=arguments):
                name = script.names.resolve(called, origin.scope)
                if name in _OPENS or name in ("builtins.sorted", "builtins.list"):
                    return True
                if name in _ORDERS:
                    return True
                if isinstance(called, ast.Attribute) and called.attr == "tolist" and deep < 4:
                    return _is_there(script, called.value, origin.scope, deep + 1)
                if name.startswith("builtins.") and deep < 4:
                    return any(_is_there(script, each, origin.scope, deep + 1) for each in arguments)
    return False
