"""A list of losses in an object that holds the state of the training."""

import torch
from types import SimpleNamespace


def train(cfg, model, loader):
    state = SimpleNamespace(step=0, losses=[], opt=torch.optim.AdamW(model.parameters(), lr=cfg.lr))
    while state.step < cfg.max_steps:
        for batch in loader:
            out = model(batch["x"].to(cfg.device))
            loss = torch.nn.functional.cross_entropy(out, batch["y"].to(cfg.device))
            (loss / cfg.accum).backward()
            if (state.step + 1) % cfg.accum == 0:
                state.opt.step()
                state.opt.zero_grad()
            state.losses.append(loss)  # expect: graph-retained
            state.step += 1
    return torch.stack(state.losses).mean()
