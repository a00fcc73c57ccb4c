"""Small batches whose statistics are those of all ranks."""

from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def build(dataset, local_rank: int):
    loader = DataLoader(dataset, batch_size=2, sampler=DistributedSampler(dataset))
    model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU())
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    return DDP(model.to(local_rank), device_ids=[local_rank]), loader
