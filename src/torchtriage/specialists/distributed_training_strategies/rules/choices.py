"""Choices that work, and have a better one beside them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.examine.source.wrappers import Wrapper, wrappers

_SMALL = 16
_FAMILIES = ("resn", "densenet", "mobilenet", "efficientnet", "wide_", "segmentation.", "video.r", "regnet", "mnasnet")
_WITH_NORMS = tuple(f"torchvision.models.{each}" for each in _FAMILIES)
_NORMS = symbols().batch_norms


@detector("source/data-parallel-used")
def data_parallel_used(script: Script) -> Iterator[Sighting]:
    """One process drives all devices (DataParallel), or a launcher is used that torchrun has replaced."""
    for wrapper in wrappers(script):
        if wrapper.kind == "scattered" and not script.hidden:
            yield script.seen(
                wrapper.call.node,
                "the model is copied to every device in every step, and one process drives them all",
            )
    if b"torch.distributed.launch" in script.text.data:
        for node in ast.walk(script.facts.scopes[0].node):
            if _launches(node):
                yield script.seen(node, "torch.distributed.launch is deprecated: torchrun does the same")


def _launches(node: ast.AST) -> bool:
    """Whether NODE imports the old launcher, or names it in a command line; mere mention in a text does not count."""
    match node:
        case ast.ImportFrom(module="torch.distributed.launch") | ast.Constant(value="torch.distributed.launch"):
            return True
        case ast.ImportFrom(module="torch.distributed", names=names) | ast.Import(names=names):
            return any(each.name in ("launch", "torch.distributed.launch") for each in names)
    return False


@detector("source/batchnorm-not-synced")
def batchnorm_not_synced(wrapper: Wrapper) -> Iterator[Sighting]:
    """Batch normalisation over a small batch per rank uses the statistics of that rank alone."""
    script = wrapper.script
    if wrapper.kind != "replicated" or script.hidden or any(script.calls("convert_sync_batchnorm", "SyncBatchNorm")):
        return
    norms = [call for call in script.calls(*_NORMS) if script.name(call).startswith("torch.nn.")]
    norms = norms or [
        call for calls in script.facts.calls.values() for call in calls if script.name(call).startswith(_WITH_NORMS)
    ]
    sizes = [size for size in _sizes(script) if size is not None]
    if norms and sizes and max(sizes) <= _SMALL:
        yield script.seen(
            wrapper.call.node,
            f"{norms[0].tail} in line {norms[0].node.lineno} sees {max(sizes)} samples at a time, those of one rank",
        )


def _sizes(script: Script) -> Iterator[int | None]:
    """The batch sizes of the loaders, where they are written out."""
    for call in script.named("torch.utils.data.DataLoader"):
        for origin in script.trace.origins(call.argument("batch_size", 1), call.scope):
            match _default(origin) if origin.is_parameter else origin.node:
                case ast.Constant(value=int(size)):
                    yield size
                case ast.Attribute(attr=word) if defaults := list(_settings(script, word)):
                    yield from defaults
                case _:
                    yield 1 << 30


def _settings(script: Script, word: str) -> Iterator[int]:
    """The defaults of an option of the command line."""
    for call in script.calls("add_argument"):
        options = [str(each.value) for each in call.node.args if isinstance(each, ast.Constant)]
        match call.argument("default"):
            case ast.Constant(value=int(value)) if any(o.lstrip("-").replace("-", "_") == word for o in options):
                yield value


def _default(origin: Origin) -> ast.expr | None:
    """The default of a parameter that no caller in this file gives."""
    given = getattr(origin.scope.node, "args", None)
    if not isinstance(given, ast.arguments) or origin.store is None:
        return None
    places = [*given.posonlyargs, *given.args]
    pairs = [
        *zip(places[::-1], given.defaults[::-1], strict=False),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    return next((value for each, value in pairs if each.arg == origin.store.name), None)
