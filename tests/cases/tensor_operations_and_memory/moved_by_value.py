"""The values of a batch are moved one by one."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader


class Classifier(nn.Module):
    def __init__(self, vocab, dim, labels):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.enc = nn.TransformerEncoderLayer(dim, 4, batch_first=True)
        self.out = nn.Linear(dim, labels)

    def forward(self, input_ids, attention_mask, labels):
        h = self.enc(self.emb(input_ids), src_key_padding_mask=attention_mask == 0)
        keep = attention_mask.unsqueeze(-1)
        logits = self.out((h * keep).sum(1) / keep.sum(1))
        return nn.functional.cross_entropy(logits, labels), logits


def collate(rows):
    ids = nn.utils.rnn.pad_sequence([r[0] for r in rows], batch_first=True)
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": torch.tensor([r[1] for r in rows])}


def get_data(n, vocab, labels):
    g = torch.Generator().manual_seed(0)
    lengths = torch.randint(8, 40, (n,), generator=g).tolist()
    return [(torch.randint(1, vocab, (k,), generator=g), k % labels) for k in lengths]


def main(args):
    device = torch.device(args.device)
    loader = DataLoader(get_data(1000, 500, 3), batch_size=args.bs, shuffle=True, collate_fn=collate)
    model = Classifier(500, 64, 3).to(device)
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr)
    warm = torch.optim.lr_scheduler.LinearLR(optim, 0.1, total_iters=50)
    model.train()
    for epoch in range(args.epochs):
        for step, batch in enumerate(loader):
            for v in batch.values():
                v.to(device)  # expect: result-dropped
            loss, _ = model(**batch)
            optim.zero_grad()
            loss.backward()
            optim.step()
            warm.step()
            if step % 10 == 0:
                print(epoch, step, loss.item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--bs", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--epochs", type=int, default=3)
    main(parser.parse_args())
