"""Two processes that meet over a file (gloo, CPU) and run a piece of code, forked from one that has imported torch."""

from __future__ import annotations

import datetime as dt
import json
import os
import types
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

LEFT: list[Any] = []  # what the code of this process has made

_PARTS = get_context("forkserver")
_PARTS.set_forkserver_preload(["torch", "torch._dynamo", "pair"])


def start(given: dict[str, Any], errors: Path) -> BaseProcess:
    """One of both. GIVEN: rank, section, folder, snippet, body, store, and the file for what the body leaves."""
    process = _PARTS.Process(target=_run, args=(given, str(errors)))
    process.start()
    return process


def _run(given: dict[str, Any], errors: str) -> None:
    os.dup2(os.open(errors, os.O_CREAT | os.O_WRONLY), 2)
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    limit = dt.timedelta(seconds=60)
    dist.init_process_group("gloo", init_method=given["store"], rank=given["rank"], world_size=2, timeout=limit)
    dist.barrier()  # nobody leaves before all have come
    names = {
        "dist": dist,
        "torch": torch,
        "rank": given["rank"],
        "section": given["section"],
        "folder": given["folder"],
    }
    snippet: dict[str, Any] = {"__name__": given["section"]}
    exec(compile(given["snippet"], given["section"], "exec"), snippet)
    names["shown"] = types.SimpleNamespace(**snippet)
    names["defined"] = snippet
    LEFT.append(names)  # a DistributedDataParallel that goes now might wait for gloo's thread for ever: see jobs.py
    exec(compile(given["body"], "body", "exec"), names)
    with Path(given["out"]).open("w") as file:
        json.dump(names["result"], file)
    dist.destroy_process_group()
