"""Steps that select by masks, and tests that wait."""

import torch
import torch.nn.functional as F


def detect_train(model, loader, opt, rank):
    model = torch.nn.parallel.DistributedDataParallel(model.to(rank), device_ids=[rank])
    for images, targets in loader:
        images = images.to(rank, non_blocking=True)
        targets = targets.to(rank, non_blocking=True)
        scores = model(images).sigmoid()
        pos = targets > 0
        loss = F.binary_cross_entropy(scores[pos], targets[pos].float())  # expect: sync-bound
        if pos.sum() == 0:
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
