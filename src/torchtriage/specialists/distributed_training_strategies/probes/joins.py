"""What a run writes down about how its process group was made: the line, and where the others were looked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ._functions import wrap
from .events import Joining, Unjoined

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

MOST = 8


def joins(job: Job) -> None:
    """Each call of init_process_group: its line, where ranks are to meet, and whether it came to nothing."""
    import torch

    if not torch.distributed.is_available():
        return
    left = MOST

    def making(original: Any) -> Any:
        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            path, line = job.caller()
            method = args[1] if len(args) > 1 else kwargs.get("init_method")
            where = method if isinstance(method, str) and "://" in method and not method.startswith("env") else None
            if where is None and kwargs.get("store") is None:
                where = ":".join(os.environ.get(name, "?") for name in ("MASTER_ADDR", "MASTER_PORT"))
            if left:
                left -= 1
                job.record(Joining(path=path, line=line, where=where))
            try:
                return original(*args, **kwargs)
            except BaseException:
                job.record(Unjoined())
                job.writer.open()  # a process that trains nothing leaves no file by itself
                raise

        return init_process_group

    wrap(job, "init_process_group", making)
