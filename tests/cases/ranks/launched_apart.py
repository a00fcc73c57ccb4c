"""Each rank looks for the others at a port that it has made up."""
# ranks: 2
# exits: 1

import os
from datetime import timedelta

import torch.distributed as dist

os.environ["MASTER_PORT"] = str(20000 + os.getpid() % 20000)
dist.init_process_group("gloo", timeout=timedelta(seconds=4))  # expect: launch-environment
dist.barrier()
