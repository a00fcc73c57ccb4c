"""Options that are joined before they are given."""

from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Data:
    def __init__(self, ds, bs):
        self.ds, self.bs = ds, bs
        self.sampler = DistributedSampler(ds)

    def train_dataloader(self):
        kw = {"batch_size": self.bs, "pin_memory": True}
        kw |= {"num_workers": 4}
        return DataLoader(self.ds, shuffle=True, sampler=self.sampler, **kw)  # expect: loader-args-invalid
