"""What an execution of the program shows about ranks and DistributedDataParallel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.lore import lore
from torchtriage.examine.source.execution.registration import bare
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain, shown
from torchtriage.examine.source.execution.values import Member, Object, Spot, Unknown, Value
from torchtriage.examine.source.facts import dotted
from torchtriage.examine.source.nodes import once
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.distributed_training_strategies.rules.data import differs_by_rank


@detector("source/wrapper-bypassed")
def wrapper_bypassed(trainings: Trainings) -> Iterator[Sighting]:
    """The model inside of DistributedDataParallel is called itself: its gradients are not averaged."""

    def find(training: Training) -> Facts:
        wrappers = training.replicas
        called = {id(forward.model) for forward, _ in training.backwards}
        for forward, _ in training.backwards:
            for wrapper in wrappers:
                inside = training.executor.modules(wrapper.state["module"])
                is_seen = not wrapper.has_escaped and not training.mentions(_BY_HAND)
                if forward.model in inside and id(wrapper) not in called and is_seen:
                    yield (
                        _outside(forward.spot, inside[0]),
                        "DistributedDataParallel wraps this model, and is not what is called",
                    )

    # on one device the same code trains without the wrapper
    yield from certain(trainings, find, where_reached=True, among=lambda training: bool(training.replicas))


_BY_HAND = re.compile(rb"all_reduce\(\s*\w+(\.\w+)*\.grad\b")
"""Gradients that the program averages itself."""


def _outside(spot: Spot, model: Object) -> Spot:
    """The call that led into MODEL, where SPOT stands within a method of it."""
    if model.cls is None:
        return spot
    first, last = model.cls.node.lineno, model.cls.node.end_lineno or 0
    chain = [(spot.path, spot.node), *reversed(spot.calls)]
    outer = (each for each in chain if each[0] != model.cls.path or not first <= getattr(each[1], "lineno", 0) <= last)
    return Spot(*next(outer, chain[0]))


@detector("source/every-rank-saves")
def every_rank_saves(trainings: Trainings) -> Iterator[Sighting]:
    """Every rank writes the same checkpoint file at the same time."""
    is_wrapped = not trainings.is_program or all(run.replicas for run in trainings.runs)

    def find(training: Training) -> Facts:
        has_joined = any(each.name.endswith(".init_process_group") for each in training.of(events.LibraryCall))
        has_met = bool(training.of(events.Collective)) and (not trainings.is_program or training.names(_STARTS))
        if training.mentions(_OWN_FOLDERS) or not (has_joined or is_wrapped or has_met):
            return  # `if options["dist"]: DDP(net)` where nothing joins a group: this program is one process
        joined = _joined(training)
        for save in training.of(events.Save):
            is_of_all = save.spot.process in joined and not save.guards
            if is_of_all and not (differs_by_rank(save.path) or _is_own(save.path)):
                what = repr(save.path) if isinstance(save.path, str) else "the same file"
                yield (
                    save.spot,
                    f"all processes write {what} at once, as no condition on the rank guards it: "
                    "a file that several processes write can end up corrupt",
                )

    yield from shown(trainings, find, throughout=True)


def _joined(training: Training) -> set[tuple[int, ...]]:
    """The processes in which ranks meet in what is executed: they join, wrap a model, or wait for each other.

    Of a method that nothing in sight calls, in the method itself: its caller may be one rank alone.
    """
    replicas = training.replicas
    return {
        each.spot.process
        for each in training.executor.events[training.executor.first :]
        if isinstance(each, events.Collective)
        or (isinstance(each, events.Made) and each.made in replicas)
        or (isinstance(each, events.Forward) and each.grad and each.model in replicas)
        or (isinstance(each, events.LibraryCall) and each.name == "torch.distributed.init_process_group")
    }


_STARTS = re.compile(
    r"init_process|init_dist|setup_dist|dist(ributed)?_(init|setup)|deepspeed|accelerat|hvd|spawn|ddp", re.I
)
"""What brings ranks together in code that is not executed; without it a helper asks in vain whether there are some."""
_OWN_FOLDERS = re.compile(rb"os\.chdir\(")
_OWN = re.compile(r"BytesIO|temp|uuid|getpid|hostname|time|rank|local|buffer|stream|gpu", re.IGNORECASE)
"""What a path is called, or made of, that is another one on every rank, or no path."""


def _is_own(path: Value) -> bool:
    """Whether each process has a PATH of its own: memory, a file that goes with it, an unknown class of files."""
    while isinstance(path, Member):
        path = path.receiver
    return isinstance(path, Unknown) and _OWN.search(path.why) is not None


@detector("source/moved-after-wrapping")
def moved_after_wrapping(trainings: Trainings) -> Iterator[Sighting]:
    """A model is moved to its device when DistributedDataParallel has wrapped it."""

    def find(training: Training) -> Facts:
        moved: set[int] = set()
        wrapped: dict[int, Object] = {}
        for event in training.executor.events:
            if isinstance(event, events.Move):
                is_move = (event.device is not None and event.device != "cpu") or _is_cuda(event.spot)
                late = wrapped.get(id(event.module)) if is_move else None
                is_here = late is not None and id(bare(late)) not in moved and not bare(late).has_escaped
                if late is not None and is_here and late.spot is not None:
                    yield (
                        event.spot,
                        f"{late.spot} has wrapped the model, whose parameters were not there yet",
                        partial(_swapped, late.spot.node),
                    )
                moved |= {id(each) for each in training.executor.modules(event.module)}
            elif isinstance(event, events.Made) and event.made in training.replicas:
                wrapped |= {id(event.made): event.made, id(bare(event.made)): event.made}

    yield from certain(trainings, find, where_reached=True)


def _swapped(wrapping: ast.AST, script: Script, move: ast.AST) -> tuple[Edit, ...]:
    """The two statements in each other's place, where nothing stands between them and both speak of one name."""
    statements = [each for each in ast.walk(script.tree) if isinstance(each, ast.Assign | ast.Expr)]
    first = next((each for each in statements if each.value is wrapping), None)
    second = next((each for each in statements if each.value is move), None)
    if not isinstance(first, ast.Assign) or second is None or not isinstance(move, ast.Call):
        return ()
    given = wrapping.args[0] if isinstance(wrapping, ast.Call) and wrapping.args else None
    held = move.func.value if isinstance(move.func, ast.Attribute) else None
    is_alike = dotted(first.targets[0]) != "" and dotted(first.targets[0]) == dotted(given) == dotted(held)
    is_near = first.lineno == first.end_lineno == second.lineno - 1 and second.end_lineno == second.lineno
    if not (is_alike and is_near and first.col_offset == second.col_offset):
        return ()
    return (
        *script.replaced("move-first", first, script.source(second)),
        *script.replaced("move-first", second, script.source(first)),
    )


def _is_cuda(spot: Spot) -> bool:
    """Whether the call at SPOT is `.cuda()`."""
    return getattr(getattr(spot.node, "func", None), "attr", "") == "cuda"


@detector("source/no-sync-missing")
def no_sync_missing(trainings: Trainings) -> Iterator[Sighting]:
    """Gradients of several batches are added up, and averaged over the ranks for each of them."""

    def find(training: Training) -> Facts:
        held = {each for model in training.replicas for each in training.executor.parameters(model)}
        is_meant = training.mentions(_HELD)
        late = {id(each.spot.node) for forward, each in training.backwards if _is_late(forward, each)}
        for step in training.of(events.OptimizerStep):
            summed = [each for parameter, each in step.gradients if parameter in held and len(each.by) - each.used > 1]
            lines = {(spot.path, spot.line) for each in summed[:1] for spot, _ in each.by[each.used :]}
            if summed and len(summed) == len(step.gradients) and len(lines) == 1:
                spot, _ = summed[0].by[-1]
                if id(spot.node) in late:
                    yield (
                        spot,
                        "no_sync() wraps the backward pass alone: the forward pass decides whether ranks average",
                    )
                elif not is_meant:
                    yield spot, _averages(step, len(summed[0].by))

    yield from shown(trainings, find, throughout=True)


def _averages(step: events.OptimizerStep, batches: int) -> str:
    return f"{step.spot} steps once in {batches} batches, and each averages its gradients over all ranks"


def _is_late(forward: events.Forward, backward: events.Backward) -> bool:
    """Whether no_sync() stands around BACKWARD, and not around the forward pass."""
    return backward.is_unsynced and not forward.is_unsynced


_HELD = re.compile(rb"no_sync|require_backward_grad_sync|set_requires_gradient_sync")


@detector("source/global-rank-as-device")
def global_rank_as_device(trainings: Trainings) -> Iterator[Sighting]:
    """The number of the process in the whole job is taken for that of a device of this machine."""

    def find(training: Training) -> Facts:
        if training.mentions(_ONE_MACHINE):
            return
        for event in training.executor.events:
            ranks = (each for each in _devices(event, training) if isinstance(each, Unknown))
            rank = next((each for each in ranks if each.why in _GLOBAL), None)
            if rank is not None and not _is_started_on_one_machine(training, Path(event.spot.path)):
                yield (
                    event.spot,
                    f"{rank.why} counts over all machines: on the second machine of 8 devices it is 8 or more, "
                    "and there is no such device",
                )
                return

    yield from certain(trainings, find, where_reached=True)


def _devices(event: events.Event, training: Training) -> tuple[Value, ...]:
    """The devices that EVENT names."""
    if isinstance(event, events.LibraryCall) and event.name in _TAKE_DEVICES:
        return (*event.arguments[:2], *event.keywords.values())
    if isinstance(event, events.Move):
        return (event.device,)
    if isinstance(event, events.Made) and event.made in training.replicas:
        devices = event.made.argument("device_ids", 1)
        return tuple(devices) if isinstance(devices, list | tuple) else ()
    return ()


_TAKE_DEVICES = ("torch.cuda.set_device", "torch.accelerator.set_device_index", "torch.device")
_GLOBAL = frozenset({"get_rank", "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"})
_ONE_MACHINE = re.compile(rb"spawn\(|start_processes|Process\(|single[ _-]node", re.IGNORECASE)
"""Where all processes are of one machine, the rank is the number of the device, too."""


def _is_started_on_one_machine(training: Training, path: Path) -> bool:
    """Whether a file of the project imports that of PATH, and starts processes: `mp.spawn(work, nprocs=gpus)`."""
    word = re.compile(rb"^\s*(?:from|import)\b.*\b%s\b" % re.escape(path.stem.encode()), re.MULTILINE)
    return any(word.search(each) and _ONE_MACHINE.search(each) for each in training.texts_of_project(path))


@detector("source/data-parallel-used")
def data_parallel_used(trainings: Trainings) -> Iterator[Sighting]:
    """One process drives all devices (DataParallel), or a launcher is used that torchrun has replaced."""

    def find(training: Training) -> Facts:
        for made in training.of(events.Made):
            if made.made.made in lore()["wrappers"]["scattered"]:
                yield made.spot, "the model is copied to every device in every step, and one process drives them all"
        for node in _launchers(training.script.tree) if training.mentions(_LAUNCHER) else ():
            spot = Spot(training.script.text.path, node)
            yield spot, "torch.distributed.launch is deprecated: torchrun does the same"

    yield from shown(trainings, find)


_LAUNCHER = re.compile(rb"torch\.distributed[. ]+(import )?launch")


@once
def _launchers(tree: ast.Module) -> list[ast.AST]:
    """Where TREE asks for the old launcher."""
    return [each for each in ast.walk(tree) if _launches(each)]


def _launches(node: ast.AST) -> bool:
    """Whether NODE imports the old launcher, or names it in a command line; mere mention in a text does not count."""
    match node:
        case ast.ImportFrom(module="torch.distributed.launch") | ast.Constant(value="torch.distributed.launch"):
            return True
        case ast.ImportFrom(module="torch.distributed", names=names) | ast.Import(names=names):
            return any(each.name in ("launch", "torch.distributed.launch") for each in names)
    return False


@detector("source/batchnorm-not-synced")
def batchnorm_not_synced(trainings: Trainings) -> Iterator[Sighting]:
    """Batch normalisation over a small batch per rank uses the statistics of that rank alone."""

    def find(training: Training) -> Facts:
        loaders = [each.made for each in training.of(events.Made) if each.made.kind == "loader"]
        sizes = [each.argument("batch_size", 1, 1) for each in loaders]
        known = [each for each in sizes if isinstance(each, int)]
        if training.mentions(_SYNCED) or not known or len(known) < len(sizes) or max(known) > _SMALL:
            return
        for wrapper in training.replicas:
            norms = [each for each in training.executor.modules(wrapper) if _normalises(each)]
            if norms and wrapper.spot is not None and norms[0].spot is not None:
                name = norms[0].made.rpartition(".")[2]
                yield (
                    wrapper.spot,
                    f"{name} in {norms[0].spot} sees {max(known)} samples at a time, those of one rank",
                )

    yield from shown(trainings, find)


_SYNCED = re.compile(rb"SyncBatchNorm|convert_sync_batchnorm")
_SMALL = 16
_FAMILIES = ("resn", "densenet", "mobilenet", "efficientnet", "wide_", "segmentation.", "video.r", "regnet", "mnasnet")
_WITH_NORMS = tuple(f"torchvision.models.{each}" for each in _FAMILIES)


def _normalises(module: Object) -> bool:
    """Whether MODULE normalises over the batch, or is a model of torchvision's with layers that do."""
    is_norm = module.made.startswith("torch.nn.") and module.made.rpartition(".")[2] in symbols().batch_norms
    return is_norm or module.made.startswith(_WITH_NORMS)
