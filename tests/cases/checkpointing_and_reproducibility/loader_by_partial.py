"""A loader that functools.partial makes."""

import json

from torch.utils.data import DataLoader, IterableDataset


class Dialogs(IterableDataset):
    def __init__(self, path, tokenizer, max_len):
        self.path, self.tokenizer, self.max_len = path, tokenizer, max_len

    def parse(self):
        for line in open(self.path, encoding="utf-8"):
            turn = json.loads(line)
            yield self.tokenizer(turn["text"])[: self.max_len]

    def __iter__(self):  # expect: iterable-not-sharded
        return self.parse()


def main(tok):
    from functools import partial

    make = partial(DataLoader, batch_size=4, num_workers=2)
    for b in make(Dialogs("d.jsonl", tok, 128)):
        print(b)
