"""Next-character prediction on a text made of repeated phrases."""

import random

import torch
import torch.nn.functional as F

from model import CharacterModel

PHRASES = [
    "the train leaves at noon from the second platform. ",
    "please keep the receipt until the goods arrive. ",
    "a warm wind came over the hills in the evening. ",
    "nobody knew who had written the short letter. ",
]


def corpus(seed, phrases=600):
    draw = random.Random(seed)
    text = "".join(draw.choice(PHRASES) for _ in range(phrases))
    vocabulary = sorted(set(text))
    codes = {character: index for index, character in enumerate(vocabulary)}
    return torch.tensor([codes[character] for character in text]), len(vocabulary)


def batch(data, size, length):
    starts = torch.randint(0, len(data) - length - 1, (size,))
    rows = torch.stack([data[start : start + length + 1] for start in starts.tolist()])
    return rows[:, :-1], rows[:, 1:]


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    total = 0.0
    for _ in range(4):
        inputs, targets = batch(data, 16, 48)
        total += F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).item()
    model.train()
    return total / 4


def main():
    torch.manual_seed(11)
    data, characters = corpus(0)
    train_data, valid_data = data[:-3000], data[-3000:]
    model = CharacterModel(characters)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    for step in range(240):
        inputs, targets = batch(train_data, 8, 48)
        logits = model(inputs)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 80 == 79:
            print(f"step {step + 1}: train {loss.item():.3f}, valid {evaluate(model, valid_data):.3f}")
    torch.save({"model": model.state_dict(), "step": 240}, "characters.pt")


if __name__ == "__main__":
    main()
