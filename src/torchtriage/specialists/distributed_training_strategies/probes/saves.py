"""What a run writes down about files that ranks save."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, Any

from .events import Save

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

MOST = 200  # that are written down


def saves(job: Job) -> None:
    """Every torch.save to a path or an open file, in jobs of several ranks: a mark of the path, its name, the line."""
    import torch

    if not torch.distributed.is_available():
        return
    probe, left = job.placing, MOST

    def saving(original: Any) -> Any:
        def save(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            where = args[1] if len(args) > 1 else kwargs.get("f")
            where = getattr(where, "name", where)  # of an open file
            if isinstance(where, (str, os.PathLike)) and torch.distributed.is_initialized() and left:
                path = os.path.realpath(where)
                left -= 1
                file, line = job.caller()
                mark = zlib.crc32(os.fsencode(path))
                if os.path.lexists(os.path.dirname(path)) and not path.startswith("/dev/"):  # noqa: PTH120
                    name = os.path.basename(path)[:80]  # noqa: PTH119
                    job.record(Save(mark=mark, file=name, path=file, line=line))
            if not left:
                job.withdraw(probe)
            return original(*args, **kwargs)

        return save

    for owner in (torch, torch.serialization):
        job.wrap(owner, "save", saving)
