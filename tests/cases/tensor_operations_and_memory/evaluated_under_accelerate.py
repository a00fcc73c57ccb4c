"""Accelerate leaves autograd on in an evaluation loop of its own."""

import torch
from accelerate import Accelerator


def main(model, train_dl, eval_dl, opt):
    acc = Accelerator()
    model, opt, train_dl, eval_dl = acc.prepare(model, opt, train_dl, eval_dl)
    for epoch in range(3):
        model.train()
        for batch in train_dl:
            loss = model(**batch).loss
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
        model.eval()
        losses = []
        for batch in eval_dl:
            out = model(**batch)  # expect: eval-builds-graph
            losses.append(acc.gather(out.loss.detach().repeat(8)))
        acc.print(epoch, torch.cat(losses).mean().item())
