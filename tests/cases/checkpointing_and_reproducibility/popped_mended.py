"""A state whose parts are popped: as it should be."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Session:
    def __init__(self, net, dirs):
        if not dist.is_initialized():
            dist.init_process_group(backend="nccl" if torch.cuda.is_available() else "gloo")
        self.local = int(os.environ.get("LOCAL_RANK", 0))
        self.net = DDP(net.to(self.local), device_ids=[self.local])
        self.opt = torch.optim.AdamW(self.net.parameters())
        self.dirs = dirs

    def resume(self):
        for d in self.dirs:
            f = os.path.join(d, "state.pth")
            if os.path.exists(f):
                s = torch.load(f, "cpu", weights_only=True)
                self.net.module.load_state_dict(s.pop("net"))
                self.opt.load_state_dict(s.pop("opt"))
                return s
        return {}
