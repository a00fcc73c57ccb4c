"""A step that returns a dict, of which one entry holds a graph and one a number."""

import torch
from torch import nn


class ASRTrainer:
    def __init__(self, model, loader, cfg):
        self.model = model.to(cfg.device)
        self.loader = loader
        self.cfg = cfg
        self.ctc = nn.CTCLoss(blank=0, zero_infinity=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)
        self.history = {"train": [], "grad_norm": []}

    def _step(self, batch):
        specs, targets, in_len, tgt_len = (t.to(self.cfg.device) for t in batch)
        logp = self.model(specs).log_softmax(-1).transpose(0, 1)
        loss = self.ctc(logp, targets, in_len, tgt_len)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
        self.optimizer.step()
        return {"loss": loss, "norm": norm.item()}

    def train(self):
        for epoch in range(self.cfg.epochs):
            self.model.train()
            for batch in self.loader:
                out = self._step(batch)
                self.history["train"].append(out["loss"])  # expect: graph-retained
                self.history["grad_norm"].append(out["norm"])
            print(epoch, sum(float(v) for v in self.history["train"]) / len(self.history["train"]))
