"""Folders that are one checkpoint: the layouts of those who write them, told by the names in them."""

from __future__ import annotations

import re
from collections.abc import Collection

LAYOUTS = ("TrainingState", "DCP", "Trainer", "Accelerate", "DeepSpeed", "model")
"""toolkit.TrainingState, torch.distributed.checkpoint, transformers' Trainer, Accelerate's save_state, DeepSpeed, and a
model as hubs have it."""
_SHARD = re.compile(r"__\d+_\d+\.distcp\Z")
_STATES = re.compile(r"(?:random_states_\d+\.pkl|optimizer(?:_\d+)?\.bin|scheduler(?:_\d+)?\.bin)\Z")
_DEEPSPEED = re.compile(r"(?:mp_rank_\d+_model_states|.*zero_pp_rank_\d+_mp_rank_\d+_(?:optim|model)_states)\.pt\Z")
_WEIGHTS = re.compile(
    r"(?:(?:model|pytorch_model|adapter_model|diffusion_pytorch_model)[\w.-]*\.(?:safetensors|bin)(?:\.index\.json)?)\Z"
)
_TRAINER = re.compile(r"(?:optimizer\.pt|scheduler\.pt|rng_state(?:_\d+)?\.pth|training_args\.bin)\Z")
_BESIDE = re.compile(r"(?:trainer_state\.json|.*\.(?:log|out|err|csv|gz|zip)|events\.out\.tfevents.*)\Z")
_RANK = re.compile(r"rank\d+\.(?:safetensors|json)\Z")
_UNFINISHED = re.compile(r"\.(?:writing|going)-\d{9,18}-[0-9a-f]{16}\Z")
_WITHIN = re.compile(r"(?:pytorch_model_fsdp|optimizer)_\d+\Z|global_step\d+\Z|(?:model|optim|optimizer)\Z")


def layout(files: Collection[str], folders: Collection[str] = ()) -> str:
    """One of LAYOUTS for a folder of these FILES and FOLDERS; "" for one that is no checkpoint."""
    if "manifest.json" in files and any(_RANK.match(name) for name in files):
        return "TrainingState"
    if ".metadata" in files or any(_SHARD.match(name) for name in files):
        return "DCP"
    if "trainer_state.json" in files and any(_TRAINER.match(name) or _WEIGHTS.match(name) for name in files):
        return "Trainer"
    if any(_DEEPSPEED.match(name) for name in files) or (
        "latest" in files and any(name.startswith("global_step") for name in folders)
    ):
        return "DeepSpeed"
    if any(_STATES.match(name) for name in files):
        return "Accelerate"
    described = {"config.json", "adapter_config.json"} & {*files} or any(name.endswith(".index.json") for name in files)
    return "model" if described and any(_WEIGHTS.match(name) for name in files) else ""


def beside(name: str) -> bool:
    """Whether a file in such a folder is for another reader: a log, the curves of the training."""
    return _BESIDE.match(name) is not None


def unfinished(name: str) -> bool:
    """Whether a folder is of a save that never came to its end, or of a step that was being taken away."""
    return _UNFINISHED.match(name) is not None


def within(name: str) -> bool:
    """Whether a folder in such a folder is a part of the same checkpoint."""
    return _WITHIN.match(name) is not None
