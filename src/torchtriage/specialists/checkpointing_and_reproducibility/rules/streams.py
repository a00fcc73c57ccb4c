"""What the source alone shows about streams of samples that several worker processes read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.loaded import LoadedDataset
from torchtriage.examine.source.script import Script

_SPLIT = re.compile(r"worker|rank|world|num_?replicas|num_?shards|n_?shards|shard_?(id|idx|index|num|count)")

_RANKS = re.compile(
    r"^(self_|my_|local_|global_|ddp_|dist_|n_|num_)?(rank|ranks|world|world_?size|num_?replicas|get_rank|get_world_size)$"
)
_OTHERS = re.compile(r"worker|shard_?(id|idx|index|num|count)|num_?shards|n_?shards|split_by")

# What hands every item to one reader alone.
_HANDED_OUT = re.compile(r"queue|redis|kafka|consumer|pubsub|broker|(^|_)lock$")

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


@detector("source/iterable-not-sharded")
def iterable_not_sharded(dataset: LoadedDataset) -> Iterator[Sighting]:
    """An IterableDataset gives every sample once for each worker."""
    script, method = dataset.script, dataset.method("__iter__")
    read = next((each for each in dataset.reads if each.workers != 1), None)
    if not dataset.is_iterable or method is None or read is None:
        return
    if any(name.partition(".")[0] in _ELSEWHERE for name in script.facts.imports) or _shares(script, dataset):
        return
    if _is_endless(method) or _is_split(script, dataset, _HANDED_OUT) or not _reads_all(script, method):
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
    opened = [script.name(each.call) for each in events if each.call is not None and _opens(script, each.call)]
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


def _opens(script: Script, call: Call) -> bool:
    """Whether CALL opens data; not what a draw chooses, which every worker draws for itself."""
    if script.name(call) not in _OPENS:
        return False
    ends = (each for node in call.arguments[:1] for each in script.trace.origins(node, call.scope))
    inner = ((each, end.scope) for end in ends if end.node is not None for each in ast.walk(end.node))
    return not any(isinstance(each, ast.Call) and _draws(script.names.resolve(each.func, at)) for each, at in inner)


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
