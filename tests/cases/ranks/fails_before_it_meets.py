"""Rank 1 ends with an error of its own before it looks for rank 0, which waits in vain: nothing is wrong with the launch."""
# ranks: 2
# exits: 1

import os
from datetime import timedelta

import torch.distributed as dist

if os.environ["RANK"] == "1":
    raise SystemError("no licence for this host")
dist.init_process_group("gloo", timeout=timedelta(seconds=4))
