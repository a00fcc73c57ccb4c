import os, torch, torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, BatchSampler
from torch.utils.data.distributed import DistributedSampler
from torch.nn.parallel import DistributedDataParallel

def main(args):
    dist.init_process_group(backend=args.backend)
    local = int(os.environ["LOCAL_RANK"])
    dataset = torch.load(args.data, weights_only=False)
    if args.distributed:
        sampler = DistributedSampler(dataset)  # expect: sampler-epoch-not-set
    else:
        sampler = torch.utils.data.RandomSampler(dataset)
    batch_sampler = BatchSampler(sampler, args.batch_size, drop_last=True)
    loader = DataLoader(dataset, batch_sampler=batch_sampler, num_workers=args.workers)
    detector = nn.Linear(8, 8).to(local)
    detector = DistributedDataParallel(detector, device_ids=[local])
    opt = torch.optim.SGD(detector.parameters(), lr=0.02)
    for epoch in range(args.start_epoch, args.epochs):
        for images, targets in loader:
            loss = detector(images.to(local)).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
