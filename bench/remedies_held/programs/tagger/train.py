"""Tags each word of a made-up sentence: the tag depends on the word and on the one before."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import clip_grad_norm_

WORDS, TAGS, LENGTH, PADDING = 120, 9, 20, -100


def sentences(count, seed):
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(1, WORDS, (count, LENGTH), generator=generator)
    before = torch.cat([torch.zeros(count, 1, dtype=torch.long), words[:, :-1]], dim=1)
    tags = (words % 3) * 3 + before % 3
    lengths = torch.randint(12, LENGTH + 1, (count, 1), generator=generator)
    padded = torch.arange(LENGTH) >= lengths
    return words.masked_fill(padded, 0), tags.masked_fill(padded, PADDING)


class WordEncoder(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.table = nn.Embedding(words, width, padding_idx=0)
        self.drop = nn.Dropout(0.1)

    def forward(self, words):
        return self.drop(self.table(words))


class Tagger(nn.Module):
    def __init__(self, width=48, hidden=64):
        super().__init__()
        self.words = WordEncoder(WORDS, width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, TAGS)

    def forward(self, words):
        states, _ = self.lstm(self.words(words))
        return self.head(states)


def tag_loss(logits, tags):
    return F.cross_entropy(logits.flatten(0, 1), tags.flatten(), ignore_index=PADDING)


def accuracy(model, words, tags):
    model.eval()
    with torch.no_grad():
        found = model(words).argmax(dim=-1)
    model.train()
    return (found == tags)[tags != PADDING].float().mean().item()


def main():
    torch.manual_seed(31)
    words, tags = sentences(2560, 0)
    held_words, held_tags = sentences(200, 1)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    start = 0
    for epoch in range(start, 4):
        total = 0.0
        for rows in torch.randperm(len(words)).split(32):
            optimizer.zero_grad()
            loss = tag_loss(model(words[rows]), tags[rows])
            loss.backward()
            clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
        right = accuracy(model, held_words, held_tags)
        if math.isfinite(total):
            torch.save({"model": model.state_dict(), "epoch": epoch + 1}, "tagger.pt")
        print(f"epoch {epoch}: loss {total / 80:.4f}, right {right:.3f}")


if __name__ == "__main__":
    main()
