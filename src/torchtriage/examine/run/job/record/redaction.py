"""What of a command line and an environment may be written down."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

REDACTED = "[redacted]"
NAMES = frozenset(
    {
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "NODE_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "ZE_AFFINITY_MASK",
        "ASCEND_RT_VISIBLE_DEVICES",
        "CUDA_LAUNCH_BLOCKING",
        "CUBLAS_WORKSPACE_CONFIG",
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "PYTHONHASHSEED",
        "SLURM_JOB_ID",
        "SLURM_PROCID",
        "SLURM_NTASKS",
        "SLURM_NNODES",
        "SLURM_RESTART_COUNT",
    }
)
PREFIXES = ("NCCL_", "TORCH_", "TORCHELASTIC_", "GLOO_")
_KEY = re.compile(  # whole words: a tokenizer is no token
    r"(?:^|[-_.])(?:token|secret|pass|passwd|password|passphrase|credentials?|auth|(?:api|access|private)[-_]?key)"
    r"(?:$|[-_.])",
    re.I,
)
_VALUE = re.compile(
    r"(?:sk|pk|hf|gh[opsu]|glpat|github_pat|xox[abp])[-_][A-Za-z0-9_-]{8,}"  # keys that say so themselves
    r"|AKIA[A-Z0-9]{16}"
    r"|eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"  # a JSON web token
    r"|[0-9a-fA-F]{32,}"
)
_USER = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def environment(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that are known to matter to training; no others."""
    return {
        name: cleaned(value)
        for name, value in sorted(variables.items())
        if (name in NAMES or name.startswith(PREFIXES)) and not _KEY.search(name)
    }


def arguments(words: Iterable[str]) -> list[str]:
    """A command line without what looks like a secret: `--token X`, `api_key=X`, keys that say so themselves."""
    shown: list[str] = []
    hide = False
    for word in words:
        name, given, _ = word.partition("=")
        option = word.startswith("-")
        secret = bool(_KEY.search(name)) and (option or bool(given))
        if hide and not option:
            shown.append(REDACTED)
        elif secret and given:
            shown.append(f"{name}={REDACTED}")
        else:
            shown.append(cleaned(word))
        hide = secret and option and not given
    return shown


def cleaned(word: str) -> str:
    """WORD without what is a secret wherever it stands."""
    return _USER.sub(REDACTED, _VALUE.sub(REDACTED, word))
