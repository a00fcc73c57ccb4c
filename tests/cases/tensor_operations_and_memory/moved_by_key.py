"""The entries of a batch are moved one by one."""

import torch


def step(model, batch, opt, device):
    for key in ("input_ids", "attention_mask", "labels"):
        batch[key].to(device)  # expect: result-dropped
    out = model(**batch)
    out.loss.backward()
    opt.step()
    opt.zero_grad()
    return out.loss.item()
