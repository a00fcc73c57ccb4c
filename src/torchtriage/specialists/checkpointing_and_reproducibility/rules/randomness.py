"""What an execution of the program shows about random numbers, and about data that workers make with them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.loading import Reading
from torchtriage.examine.source.execution.lore import lore
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, shown
from torchtriage.examine.source.execution.values import (
    Class,
    Function,
    Object,
    Spot,
    Unknown,
    Value,
    truth,
)
from torchtriage.examine.source.nodes import nodes_in
from torchtriage.examine.source.torch_api.symbols import symbols


@detector("source/seeds-incomplete")
def seeds_incomplete(trainings: Trainings) -> Iterator[Sighting]:
    """Some generators are seeded, and one that this script draws from is not."""

    def find(training: Training) -> Facts:
        calls = training.of(events.LibraryCall)
        seeds = [each for each in calls if _SEEDS.get(each.name) is not None]
        if not all(each.arguments or each.keywords for each in seeds):
            return  # random.seed(): another run each time is what is asked for
        is_seeded_elsewhere = any("seed" in each.name.rpartition(".")[2] and each.name not in _SEEDS for each in calls)
        if not seeds or is_seeded_elsewhere or training.mentions(_ELSEWHERE_SEEDED) or "seed" in training.blind:
            return
        kinds = list(dict.fromkeys(_SEEDS[each.name] for each in seeds))
        by = f"{' and '.join(kinds)} {'are' if len(kinds) > 1 else 'is'} seeded ({seeds[0].spot})"
        yield from _unseeded_draws(training, calls, kinds, by)
        yield from _unseeded_generators(training, by)
        is_host_open = "torch" not in kinds and ("CUDA" in kinds or {"NumPy", "Python"} <= set(kinds))
        if is_host_open and _trains_new_model(training):
            what = "torch on the CPU" if "CUDA" in kinds else "torch"
            yield (
                seeds[0].spot,
                f"{by}, but {what} is not: initial weights and the loader's order differ from run to run",
            )

    yield from shown(trainings, find)


_SEEDS = {
    **dict.fromkeys(symbols().host_seeds, "torch"),
    **dict.fromkeys(symbols().device_seeds, "CUDA"),
    **dict.fromkeys(("random.seed", "random.setstate"), "Python"),
    **dict.fromkeys(("numpy.random.seed", "numpy.random.set_state"), "NumPy"),
}
_ELSEWHERE_SEEDED = re.compile(rb"get_worker_info|full_determinism|make_deterministic\(|reproducib\w*\(")


def _unseeded_draws(training: Training, calls: list[events.LibraryCall], kinds: list[str], by: str) -> Facts:
    """The first draw from the global generator of Python, and from that of NumPy, where nothing seeds it."""
    for kind, module in (("Python", "random"), ("NumPy", "numpy.random")):
        draws = (each for each in calls if each.name.rpartition(".")[0] == module)
        mine = (each for each in draws if each.name.rpartition(".")[2] in _DRAWS and _matters(training, each.spot))
        draw = next(mine, None) if kind not in kinds else None
        if draw is None and kind == "NumPy" and kind not in kinds:
            draw = next((each for each in calls if each.name == _SPLIT and _is_shuffled(each)), None)
        if draw is not None and not _may_be_seeded(training, kind):
            yield (
                draw.spot,
                f"{by}, but {draw.name} draws from a generator of {kind} that nothing seeds: "
                "it differs from run to run",
            )


_SEED_CALLS = {
    "Python": re.compile(rb"(?<![\w.])random\.seed\("),
    "NumPy": re.compile(rb"(np|numpy)\.random\.seed\("),
}
"""What seeds them: set_seed() of a file that is imported may have been called before what is executed here."""


def _may_be_seeded(training: Training, kind: str) -> bool:
    """Whether a caller out of sight may have seeded the generator of KIND: in a file that this one imports, in this
    one, or in one that names it. What seeds a worker seeds nothing else.
    """
    if training.executor.entry is None:
        return False
    script, word = training.script, _SEED_CALLS[kind]
    seeds = (each for each in script.calls("seed") if _SEEDS.get(script.name(each)) == kind)
    if any("worker" not in each.scope.name for each in seeds):
        return True
    path = Path(script.text.path)
    mine = re.compile(rb"\b" + re.escape(path.stem.encode()) + rb"\b")
    users = (each for each in training.texts_of_project(path) if mine.search(each))
    used, files = training.executor.links.used, training.executor.files
    imported = any(used[each].mentions(word) for each in files if each in used)
    return imported or any(map(word.search, users))


def _is_shuffled(call: events.LibraryCall) -> bool:
    return "random_state" not in call.keywords and truth(call.keywords.get("shuffle", True)) is not False


def _unseeded_generators(training: Training, by: str) -> Facts:
    """The first generator of the program's own that is drawn from and has no seed; torch's have one by default."""
    for draw in training.of(events.Draw):
        made = draw.generator
        is_open = not made.arguments and not made.keywords and not made.made.startswith("torch.")
        if is_open and made.spot is not None and _matters(training, made.spot):
            yield made.spot, f"{by}, but `{ast.unparse(made.spot.node)}` has no seed: it differs from run to run"
            return


def _matters(training: Training, spot: Spot) -> bool:
    """Whether the draw at SPOT is for the training, and not for a port, the name of a run, a picture."""
    assigned = (each for each in ast.walk(training.code_around(spot)) if isinstance(each, ast.Assign))
    mine = next((each for each in assigned if id(spot.node) in nodes_in(each)), None)
    whole = training.script.text.line(spot.line).lower() if spot.path == training.script.text.path else ""
    line = ast.unparse(mine).lower() if mine is not None and not whole else whole.partition("#")[0]
    target, is_assigned, _ = line.partition(" = ")
    if _ASIDE.search(target) if is_assigned else _IN_PASSING.search(line):
        return False
    names = [each.name.lower() for each in training.definitions_around(spot)]
    return not any(map(_LOOKS.search, names))


def _trains_new_model(training: Training) -> bool:
    """Whether an optimizer steps on a model that the program makes from scratch."""
    held = {each for step in training.of(events.OptimizerStep) for each in training.parameters_of(step.optimizer)}
    owners = {id(each.owner): each.owner for each in held if each.owner is not None}.values()
    return any(not (each.state.get("is_given") or each.made.endswith("from_pretrained")) for each in owners)


_SPLIT = "sklearn.model_selection.train_test_split"
_DRAWS = frozenset({
    "random", "randint", "randrange", "shuffle", "choice", "choices", "sample", "uniform", "gauss", "rand", "randn",
    "permutation", "normal", "beta", "random_sample", "binomial", "normalvariate", "betavariate", "triangular",
    "poisson", "exponential", "dirichlet", "multinomial", "gamma", "getrandbits", "expovariate",
})  # fmt: skip
_ASIDE = re.compile(
    r"port\b|seed|uuid|name\b|colou?r|suffix|delay|backoff|shown|preview|save_|_dir\b|_id\b|folder"
    r"|\b(tag|title|slug|salt|nonce|stamp)\b"
)
"""What a draw may be for without touching the training: a port, a name of the run, a picture, the seed itself."""
_IN_PASSING = re.compile(r"port\b|seed|uuid|string\.(ascii|digits|hex)|sleep|print\(|\.init\(|logg|environ")
_LOOKS = re.compile(r"plot|show|vis|display|demo|test|eval|predict|preview|debug|collate|worker|augment")


@detector("source/dataset-owned-rng")
def dataset_owned_rng(trainings: Trainings) -> Iterator[Sighting]:
    """A random generator that belongs to the dataset draws the same numbers in every worker."""

    def find(training: Training) -> Facts:
        for reading in training.readings:
            if not _is_copied(reading):
                continue
            for draw in reading.events:
                generator = draw.generator if isinstance(draw, events.Draw) else None
                is_own = generator is not None and generator.state["worker"] is None and generator.spot is not None
                if generator is not None and generator.spot is not None and is_own:
                    owner, name = next(_holders(reading.dataset, generator), (reading.dataset, ""))
                    if not _is_set_later(owner, name):
                        yield generator.spot, _copies(f"self.{name}" if name else "this generator", reading)

    yield from shown(trainings, find)


def _is_copied(reading: Reading) -> bool:
    """Whether the workers get the dataset as it is, and nobody gives each of them other generators."""
    made, loader = reading.dataset.cls, reading.loader
    prepare = loader.argument("worker_init_fn", 10)
    is_told = isinstance(prepare, Function) and _WORKERS.search(ast.unparse(prepare.node)) is None
    if made is None or not (prepare is None or is_told) or any(map(made.has, _BY_HAND)) or "**" in loader.keywords:
        return False
    is_kept = truth(loader.argument("persistent_workers", None, False)) is not False
    return not _speaks(made, _WORKERS) and (reading.workers != 1 or not is_kept)


_WORKERS = re.compile(r"get_worker_info|\.dataset\b")
_BY_HAND = ("__getstate__", "__setstate__", "__reduce__")


def _copies(name: str, reading: Reading) -> str:
    line = reading.loader.spot.line if reading.loader.spot is not None else 0
    if reading.workers == 1:
        return f"{name} goes into the worker of line {line} as a copy: every epoch draws the numbers of the first"
    count = f"each of the {reading.workers}" if reading.workers else "each of the"
    is_kept = truth(reading.loader.argument("persistent_workers", None, False)) is not False
    again = "" if is_kept else ", and again in every epoch"
    return f"{name} goes into {count} workers of line {line} as a copy: all draw the same numbers{again}"


def _holders(owner: Object, generator: Object, deep: int = 0) -> Iterator[tuple[Object, str]]:
    """What of OWNER, and of what it consists of, holds GENERATOR, and under which name."""
    for name, value in owner.values.items():
        for each in value if isinstance(value, list | tuple) else (value,):
            if each is generator:
                yield owner, name
            elif isinstance(each, Object) and deep < _NESTED:
                yield from _holders(each, generator, deep + 1)


_NESTED = 3


def _is_set_later(owner: Object, name: str) -> bool:
    """Whether a method of OWNER sets or seeds its generator NAME anew: for each epoch, worker or sample."""
    for each in owner.cls.lineage if owner.cls is not None and name else ():
        inside = each.namespace.items() if isinstance(each, Class) else ()
        methods = (value for key, value in inside if isinstance(value, Function) and key != "__init__")
        for node in (node for method in methods for node in ast.walk(method.node)):
            stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == name
            called = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
            held = called.value if called is not None and called.attr in _SEEDING else None
            if stored or (isinstance(held, ast.Attribute) and held.attr == name):
                return True
    return False


_SEEDING = ("seed", "manual_seed", "set_state", "setstate", "jumped", "advance")


@detector("source/iterable-not-sharded")
def iterable_not_sharded(trainings: Trainings) -> Iterator[Sighting]:
    """An IterableDataset gives every sample once for each worker."""

    def find(training: Training) -> Facts:
        for reading in training.readings:
            made = reading.dataset.cls
            method = made.method("__iter__") if made is not None else None
            if made is None or method is None or reading.workers == 1 or training.mentions(_ELSEWHERE):
                continue
            is_stream = "torch.utils.data.IterableDataset" in made.externals
            if is_stream and not (_shares(made) or _is_endless(method)) and _reads_all(reading):
                yield Spot(method.frame.file.path, method.node), _repeats(reading)

    yield from shown(trainings, find)


def _repeats(reading: Reading) -> str:
    line = reading.loader.spot.line if reading.loader.spot is not None else 0
    count = f"{reading.workers} workers" if reading.workers else "workers"
    times = f"{reading.workers} times" if reading.workers else "once for each of them"
    return (
        f"this runs from its beginning in each of the {count} of the loader in line {line}: "
        f"an epoch holds every sample {times}"
    )


_LIBRARIES = rb"(datasets|webdataset|torchdata|streaming|litdata|ffcv|tensorflow)"
_ELSEWHERE = re.compile(rb"import " + _LIBRARIES + rb"|from " + _LIBRARIES + rb"|get_worker_info")
"""What shares out the samples itself."""
_RANKS = re.compile(r"(self_|my_|local_|global_|ddp_|dist_|n_|num_)?(ranks?|world|world_?size|num_?replicas)|get_rank")
_PARTS = re.compile(r"worker|shard_?(id|idx|index|num|count)|num_?shards|n_?shards|split_by")
_HANDED_OUT = re.compile(r"queue|redis|kafka|consumer|pubsub|broker|(^|_)lock$")
"""What hands every item to one reader alone."""


def _shares(made: Class) -> bool:
    """Whether the workers may share out the samples: the class names them, or takes every n-th of something.

    Where it speaks of ranks alone, what it takes is the part of a rank, of which every worker gets all.
    """
    nodes = [node for each in made.lineage if isinstance(each, Class) for node in ast.walk(each.node)]
    words = {(getattr(each, "attr", "") or getattr(each, "id", "") or getattr(each, "arg", "") or "") for each in nodes}
    lower = {word.lower() for word in words}
    if any(_PARTS.search(word) or _HANDED_OUT.search(word) for word in lower):
        return True
    is_of_ranks = any(_RANKS.fullmatch(word) for word in lower)
    return not is_of_ranks and any(isinstance(each, ast.Mod) or _steps(each) for each in nodes)


def _steps(node: ast.AST) -> bool:
    """Whether NODE takes every n-th: files[i::n], islice(files, i, None, n)."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).endswith("islice") and len(node.args) > 2
    return isinstance(node, ast.Slice) and node.step is not None


def _speaks(made: Class, words: re.Pattern[str]) -> bool:
    """Whether the code of MADE has one of WORDS."""
    own = (each.node for each in made.lineage if isinstance(each, Class))
    return any(words.search(ast.unparse(each)) for each in own)


def _is_endless(method: Function) -> bool:
    """A stream without end has no epoch in which a sample could come twice."""
    for node in ast.walk(method.node):
        if isinstance(node, ast.While) and isinstance(node.test, ast.Constant):
            return True
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("cycle", "count", "repeat"):
            return True
    return False


def _reads_all(reading: Reading) -> bool:
    """Whether what a worker goes through is surely data that is there: files, lists, ranges; not what it draws."""
    calls = [each for each in reading.events if isinstance(each, events.LibraryCall)]
    gone = [each.value for each in reading.events if isinstance(each, events.Passage)]
    is_drawn = any(isinstance(each, events.Draw) for each in reading.events) or any(_draws(each.name) for each in calls)
    opened = (each for each in calls if each.name in lore()["opening"] or each.name in _LISTS)
    if any(not (each.arguments and _is_drawn(each.arguments[0])) for each in opened):
        return True
    own = [each for each in reading.dataset.values.values() if isinstance(each, list | tuple)]
    if any(each is one for each in gone for one in own):
        return True
    if any(isinstance(each, Unknown) and _LISTED.search(each.why) for each in gone):
        return True
    return not is_drawn and any(isinstance(each, list | tuple | dict | range) or _is_list(each) for each in gone)


_LISTS = ("iterdir", "rglob", "readlines")
_LISTED = re.compile(
    r"(files|file_?names|file_?list|paths|documents|docs|texts|lines|items|records|sentences|rows|examples|articles"
    r"|shards|episodes|indices|pairs|tracks|clips|sequences|urls|images)$"
)
"""What lists are called whose elements every worker that runs over them gets."""


def _is_list(value: Value) -> bool:
    return isinstance(value, Unknown) and value.why in ("a list", "a range", "builtins.sorted")


def _is_drawn(value: Value) -> bool:
    return isinstance(value, Unknown) and _draws(value.why)


def _draws(name: str) -> bool:
    head, _, last = name.rpartition(".")
    is_random = head in ("random", "numpy.random") or name.startswith(("torch.rand", "torch.normal", "torch.multinom"))
    return is_random and last not in ("shuffle", "permutation", "randperm", "seed")
