"""What tokenizers and converters of packages give has a to() that works in place."""

import torch
from torch import nn
from transformers import GPT2Model, GPT2Tokenizer

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Captions(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokenizer = GPT2Tokenizer.from_pretrained("gpt2")
        self.encoder = GPT2Model.from_pretrained("gpt2").to(device)

    def forward(self, text):
        words = self.tokenizer(text, return_tensors="pt", padding="max_length", max_length=77)
        words["attention_mask"][:, words["input_ids"].argmax(dim=-1)] = 1
        words.to(device)
        return self.encoder(**words).last_hidden_state


def encode(texts, tokenizer, model, device="cpu"):
    encoded = tokenizer(texts, padding=True, return_tensors="pt")
    encoded.to(device)
    with torch.no_grad():
        output = model(**encoded, return_dict=True)
    return output.last_hidden_state.mean(1)


def load(model, path, device=None):
    saved = torch.load(path, map_location="cpu", weights_only=False)  # expect: pickle-trusted
    if "recipe" in saved:
        recipe = saved["recipe"]
        converter = recipe["type"](model, **recipe["options"])
        model = converter.convert(recipe["dummy"])
    model.load_state_dict(saved["state_dict"])
    if device is not None:
        model.to(device)
    return model
