"""What the source alone shows about repeating a run: what is seeded, and what is drawn from unseeded."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Call, Scope
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.checkpointing_and_reproducibility.rules.places import is_false

_SEEDS = {
    "torch": symbols().host_seeds,
    "cuda": symbols().device_seeds,
    "numpy": ("numpy.random.seed", "numpy.random.set_state"),
    "random": ("random.seed", "random.setstate"),
}
_CALLED = {"torch": "torch", "cuda": "CUDA", "numpy": "NumPy", "random": "Python"}
_DRAWS = {
    "random": (
        *("random", "randint", "randrange", "uniform", "choice", "choices", "sample", "shuffle", "gauss"),
        *("normalvariate", "betavariate", "getrandbits", "triangular", "expovariate"),
    ),
    "numpy.random": (
        *("rand", "randn", "randint", "random", "random_sample", "choice", "shuffle", "permutation", "normal"),
        *("uniform", "beta", "binomial", "poisson", "exponential", "dirichlet", "multinomial", "gamma"),
    ),
}
_UNSEEDED = ("numpy.random.default_rng", "numpy.random.RandomState", "random.Random")

# What a draw may be for without touching the training: a port, a name of the run, a picture, the seed itself.
_ASIDE = re.compile(
    r"port\b|seed|uuid|(run|exp|file|job|dir)_?name|colou?r|suffix|delay|backoff|shown|preview|save_|_dir\b|_id\b|folder"
    r"|\b(name|tag|title|slug|salt|nonce|stamp)\b"
)
_IN_PASSING = re.compile(r"port\b|seed|uuid|string\.(ascii|digits|hex)|sleep|print\(|\.init\(|logg|environ")
_LOOKS = re.compile(r"plot|show|vis|display|demo|test|eval|predict|preview|debug|main_worker_port")


@detector("source/seeds-incomplete")
def seeds_incomplete(script: Script) -> Iterator[Sighting]:
    """Some generators are seeded, and one that this script draws from is not."""
    seeded = {kind: [call for call in script.named(*names) if _is_global(call)] for kind, names in _SEEDS.items()}
    first = min((call for calls in seeded.values() for call in calls), key=lambda call: call.order, default=None)
    if first is None or script.hidden or not _trains(script) or _seeds_elsewhere(script):
        return
    known = " and ".join(_CALLED[kind] for kind, calls in seeded.items() if calls)
    by = f"{known} {'are' if ' and ' in known else 'is'} seeded (line {first.node.lineno})"
    for kind in ("random", "numpy"):
        draw = next(_draws(script, kind), None) if not seeded[kind] else None
        if draw is not None:
            yield script.seen(
                draw.node,
                f"{by}, but {script.name(draw)} draws from a generator of {_CALLED[kind]} that nothing seeds: it "
                "differs from run to run",
            )
    loose = next(_unseeded(script), None)
    if loose is not None:
        yield script.seen(loose.node, f"{by}, but {script.source(loose.node)} has no seed: it differs from run to run")
    others = seeded["cuda"] or (seeded["numpy"] and seeded["random"])
    if others and not seeded["torch"] and _trains_new_model(script):
        what = "torch on the CPU" if seeded["cuda"] else "torch"
        yield script.seen(
            first.node,
            f"{by}, but {what} is not: initial weights and the loader's order differ from run to run",
        )


def _trains(script: Script) -> bool:
    """Whether the file trains, by itself or by a function from elsewhere."""
    return any(script.calls("backward")) or any(
        tail.lower().startswith(("train", "fit")) and any(call.arguments for call in calls)
        for tail, calls in script.facts.calls.items()
    )


def _is_global(call: Call) -> bool:
    """Not what a worker does for itself."""
    return "worker" not in call.scope.name


def _seeds_elsewhere(script: Script) -> bool:
    """Whether a function that cannot be seen may seed more: set_seed from another file."""
    for tail, calls in script.facts.calls.items():
        if "seed" not in tail.lower() and "determinis" not in tail.lower() and "reproduc" not in tail.lower():
            continue
        for call in calls:
            if tail == "seed" and _is_any_module(script, call):
                return True
            root = script.name(call).partition(".")[0]
            bare = call.receiver is None and script.trace.definition(call.node.func, call.scope) is None
            if (root or bare) and root not in ("torch", "numpy", "random", "builtins"):
                return True
    return False


def _is_any_module(script: Script, call: Call) -> bool:
    """Whether it seeds what a loop or a call gives: for module in (random, numpy.random): module.seed(0)."""
    match call.receiver:
        case ast.Call():
            return True
        case ast.Name(id=name):
            return any(store.how == "element" for store in script.names.stores(name, call.scope))
    return False


def _draws(script: Script, kind: str) -> Iterator[Call]:
    """The draws of the main process from the global generator of KIND."""
    module = "numpy.random" if kind == "numpy" else kind
    for call in script.named(*(f"{module}.{word}" for word in _DRAWS[module])):
        if _matters(script, call):
            yield call
    for call in script.named("sklearn.model_selection.train_test_split") if kind == "numpy" else ():
        given = {each.arg for each in call.node.keywords}
        if not given & {"random_state", None} and not is_false(call.argument("shuffle")) and _matters(script, call):
            yield call


def _unseeded(script: Script) -> Iterator[Call]:
    for call in script.named(*_UNSEEDED):
        if not call.arguments and _matters(script, call):
            yield call


def _matters(script: Script, call: Call) -> bool:
    """Whether the draw is surely made by the main process and for the training."""
    statement = call.statement
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if any(_ASIDE.search(script.source(each).lower()) for each in targets):
            return False
    else:
        said = getattr(statement, "test", None) or getattr(statement, "iter", None) or statement
        if _IN_PASSING.search(script.source(said).lower()[:200]):
            return False
    return _is_run(script, call.scope, ())


def _is_run(script: Script, scope: Scope, through: tuple[Scope, ...]) -> bool:
    """Whether the main process of this file runs SCOPE. What a dataset or a transform draws, workers may draw."""
    if scope.kind == "module":
        return True
    if scope.kind != "function" or scope in through or _LOOKS.search(scope.name.lower()) or _is_of_data(script, scope):
        return False
    sites = script.trace.sites(scope)
    if not sites:
        return _seeds_before(script, scope)
    return any(_is_run(script, site.scope, (*through, scope)) for site in sites)


def _seeds_before(script: Script, scope: Scope) -> bool:
    """Whether a function that nothing here calls seeds by itself; of a class, whether any of its methods does."""
    own = [each for each in script.facts.scopes if each.host is scope.host] if scope.host is not None else [scope]
    seeding = {id(call) for names in _SEEDS.values() for call in script.named(*names) if _is_global(call)}
    events = (event for each in own for event in script.written.events(Ring(each.body, each)))
    return any(id(event.call) in seeding or _seeds_itself(script, event, seeding) for event in events)


def _seeds_itself(script: Script, event: Event, seeding: set[int]) -> bool:
    """Whether EVENT makes an object of this file that seeds as it begins."""
    call = event.call
    made = script.trace.definition(call.node.func, call.scope) if call is not None else None
    names = ("__init__", "__post_init__", "__enter__", "__call__") if made is not None and made.kind == "class" else ()
    begun = [script.trace.method(made, name) for name in names] if made is not None else []
    inside = (event for each in begun if each is not None for event in script.written.events(Ring(each.body, each)))
    return any(id(each.call) in seeding for each in inside)


def _is_of_data(script: Script, scope: Scope) -> bool:
    host = scope.host
    if host is not None and scope.name == "__init__":  # the main process makes it
        return False
    if host is None:
        return any(word in scope.name.lower() for word in ("collate", "worker", "augment", "transform"))
    own = {name for each in script.trace.lineage(host) for name in each.inner}
    bases = script.trace.bases(host)
    return bool(own & {"__getitem__", "__call__", "__iter__"}) or any("Dataset" in base for base in bases)


def _trains_new_model(script: Script) -> bool:
    """Whether the main process makes a model of this file, or of torch's layers, and an optimizer for it."""
    optimizers = (call for tail in script.facts.calls for call in script.facts.calls[tail])
    made = any(script.name(call).startswith("torch.optim.") and call.arguments for call in optimizers)
    if not made or not any(script.calls("backward")):
        return False
    models = (
        part for call in script.calls("parameters") for part in script.roles.made(call.receiver, call.scope, "model")
    )
    scopes = (part.scope for part in models if not part.name.endswith("from_pretrained"))
    return any(scope is not None and _is_run(script, scope, ()) for scope in scopes)
