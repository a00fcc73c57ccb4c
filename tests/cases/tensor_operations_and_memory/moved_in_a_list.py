"""A list of moved tensors that nothing takes."""

import torch


def loop(loader, model, crit, opt, dev):
    for batch in loader:
        [t.to(dev) for t in batch]  # expect: result-dropped
        x, y = batch
        loss = crit(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
