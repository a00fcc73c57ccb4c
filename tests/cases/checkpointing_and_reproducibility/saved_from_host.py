"""Each entry of a state is brought to the CPU before it is saved."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Keeper:
    def __init__(self, net: nn.Module):
        dist.init_process_group("nccl")
        self.net = DistributedDataParallel(net.cuda(), device_ids=[torch.cuda.current_device()])

    def save(self, path: str):
        state = self.net.module.state_dict()
        for key, value in state.items():
            state[key] = value.cpu()
        if dist.get_rank() == 0:
            torch.save(state, path)

    def load(self, path: str):
        state = torch.load(path)
        self.net.module.load_state_dict(state)
