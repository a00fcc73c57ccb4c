"""What memory is for, by the stack that asked for it, the one that let it go, and how long it lives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from torchtriage.examine.artefact.frames import Frame, is_python
from torchtriage.examine.artefact.snapshot import OTHERS, Group, Memory

PARAMETERS, GRADIENTS, STATES, ACTIVATIONS, BACKWARD, WORKSPACE, OTHER, UNKNOWN = (
    "parameters", "gradients", "optimizer states", "activations", "passing results of backward", "workspace",
    "the job's own", "unrecorded",
)  # fmt: skip
_OPTIMIZER = re.compile(r"/optim(?:izers?)?/|/adam|bitsandbytes/|apex/optimizers")
_STATES = re.compile(r"init_group|init_state|state_init|_init_opt")
_LOADING = frozenset(
    {
        "_apply", "to", "cuda", "half", "bfloat16", "float", "to_empty", "load_state_dict", "_load_from_state_dict",
        "from_pretrained", "__init__", "reset_parameters",
    }
)  # fmt: skip
_MODULES = re.compile(r"/torch/nn/(?:modules/|init\.py|parameter\.py)|/transformers/modeling_utils|/accelerate/")
_FORWARD = frozenset({"_call_impl", "_wrapped_call_impl", "forward", "recompute_fn"})
_FUNCTIONAL = re.compile(r"/torch/nn/functional\.py|/torch/utils/checkpoint\.py")
_AGAIN = re.compile(r"/torch/utils/checkpoint\.py|/checkpoint/")
_RECOMPUTED = frozenset({"recompute_fn", "unpack_hook", "backward", "_run_fn_with_dynamo_disabled"})
_BUCKETS = re.compile(r"c10d::Reducer|_ddp_init_helper|reduce_scatter|AccumulateGrad")
_GATHERED = re.compile(r"all_gather|unshard")
_ENGINE = re.compile(  # the bindings of forward operations are in torch::autograd too
    r"autograd::(?:python::Python)?Engine|autograd::generated::\w*Backward|_engine_run_backward|autograd::PyNode"
)
_WORKSPACES = re.compile(r"[Ww]orkspace|cudnn|cublas|cusolver|cusparse|nccl|miopen")
LOSS = re.compile(r"/torch/nn/modules/loss\.py")
LOSSES = re.compile(r"(?:^|_)loss$|cross_entropy|kl_div|binary_cross_entropy")


def parts(memory: Memory) -> Counter[str]:
    """Bytes alive at the looked-at row, by what they are for."""
    found: Counter[str] = Counter()
    for group in memory.device.at.groups:
        found.update(dict(purposes(memory, group)))
    found[UNKNOWN] += max(memory.device.at.used - sum(found.values()), 0)
    return found


def purposes(memory: Memory, group: Group) -> list[tuple[str, int]]:
    """What the bytes of GROUP are for; those of a backward pass are told apart by their age."""
    frames = memory.frames(group.stack)
    if group.stack == OTHERS:
        return [(UNKNOWN, group.bytes)]
    if not frames and (group.freed == -1 or not memory.device.entries) and group.kept == group.bytes == group.old:
        return [(UNKNOWN, group.bytes)]
    known = _of_stack(frames, kept=group.kept * 2 > group.bytes)
    if known != BACKWARD:
        return [(known, group.bytes)]
    if any("zero_grad" in frame.function for frame in memory.frames(group.freed)):
        return [(GRADIENTS, group.bytes)]
    return [(GRADIENTS, group.old), (BACKWARD, group.bytes - group.old)]


def passes(memory: Memory) -> int:
    """How often a backward pass follows a forward pass, as far as the sampled allocations show it; at least."""
    kinds = {stack: _pass_of(memory.frames(stack)) for stack in set(memory.device.sampled)}
    told = [kind for stack in memory.device.sampled if (kind := kinds[stack])]
    return sum(one == "forward" and other == "backward" for one, other in pairwise(told))


def _pass_of(frames: Sequence[Frame]) -> str:
    """What a backward pass computes again belongs to it; "" for what tells nothing."""
    if _is_again(frames):
        return "backward"
    kind = _of_stack(frames, kept=False)
    return {ACTIVATIONS: "forward", BACKWARD: "backward"}.get(kind, "")


def _is_again(frames: Sequence[Frame]) -> bool:
    """Whether activation checkpointing computes a forward pass again."""
    return any(_AGAIN.search(frame.path) and frame.function in _RECOMPUTED for frame in frames)


def is_state(frames: Sequence[Frame]) -> bool:
    """Whether what these FRAMES allocated and nobody freed is there to stay."""
    return _of_stack(frames, kept=True) in {PARAMETERS, GRADIENTS, STATES}


def is_forward(frames: Sequence[Frame]) -> bool:
    return _of_stack(frames, kept=False) == ACTIVATIONS


def is_loss(frames: Sequence[Frame]) -> bool:
    """Whether the innermost line of Python computes a loss."""
    inner = [frame for frame in frames if is_python(frame)][:2]
    return any(LOSS.search(frame.path) or LOSSES.search(frame.function) for frame in inner)


def _of_stack(frames: Sequence[Frame], *, kept: bool) -> str:
    """By the first of these rules that fits; the outermost caller decides little, so order does."""
    python = [frame for frame in frames if is_python(frame)]
    native = [frame for frame in frames if not is_python(frame)]
    found = _by_optimizer(python, native, kept) or _by_python(python, native) or _by_native(python, native)
    return found or (OTHER if python else BACKWARD)


def _by_optimizer(python: Sequence[Frame], native: Sequence[Frame], kept: bool) -> str:
    if any(_WORKSPACES.search(frame.function) and "orkspace" in frame.function for frame in native):
        return WORKSPACE
    inside = [frame for frame in python if _OPTIMIZER.search(frame.path)]
    if not inside:
        return ""
    if any(frame.function == "zero_grad" for frame in inside):
        return GRADIENTS
    return STATES if kept or any(_STATES.search(frame.function) for frame in inside) else WORKSPACE


def _by_python(python: Sequence[Frame], native: Sequence[Frame]) -> str:
    functions = [frame.function for frame in (*python, *native)]
    if any(_BUCKETS.search(name) for name in functions):
        return GRADIENTS
    if any("/fsdp/" in frame.path and _GATHERED.search(frame.function) for frame in python):
        return PARAMETERS
    if any(map(_ENGINE.search, functions)) and not _is_again(python):
        return BACKWARD  # whatever line of a forward pass compiled code calls its own
    if any(frame.function in _FORWARD or _FUNCTIONAL.search(frame.path) for frame in python):
        return ACTIVATIONS
    if any(_MODULES.search(frame.path) and frame.function in _LOADING for frame in python):
        return PARAMETERS
    return ""


def _by_native(python: Sequence[Frame], native: Sequence[Frame]) -> str:
    if not python and any(_WORKSPACES.search(frame.function) for frame in native):
        return WORKSPACE
    return ""
