"""Each word, the padding and the unknown have a row of their own, and there is no row too many."""

from typing import Any

import torch


def check(program: Any) -> None:
    words = ["red", "green", "blue"]
    vocabulary = program.Vocabulary(words)
    table = program.make_embedding(vocabulary)
    numbers = vocabulary.encode("blue green red purple")
    vectors = table(numbers)
    assert vectors.shape == (8, 4)
    own = numbers[:5].tolist()
    assert len(set(own)) == 5, f"words share a row: {own}"
    assert torch.equal(vectors[4:], torch.zeros(4, 4)), "the padding is not zero"
    assert own[3] == vocabulary.encode("orange")[0], "unknown words have different rows"
    assert table.num_embeddings == 5, f"{table.num_embeddings} rows for three words, the padding and the unknown"
