"""A rank of -1 says that there is one process: whoever has another one belongs to the group."""

import torch
import torch.distributed as dist


class Controller:
    def __init__(self):
        self.rank = dist.get_rank() if dist.is_initialized() else -1

    def wait(self):
        if self.rank >= 0:
            dist.barrier()

    def load(self, model, path):
        self.wait()
        model.load_state_dict(torch.load(path, map_location="cpu"))
        self.wait()
