import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .corpus import IGNORE, PAD


class Tagger(nn.Module):
    """Word embeddings, a GRU in both directions and a linear layer per word."""

    def __init__(self, vocab_size: int, num_tags: int, embedding: int = 32, hidden: int = 32, dropout: float = 0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding, padding_idx=PAD)
        self.dropout = nn.Dropout(dropout)
        self.gru = nn.GRU(embedding, hidden, batch_first=True, bidirectional=True)
        self.output = nn.Linear(2 * hidden, num_tags)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        embedded = self.dropout(self.embedding(words))
        packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = self.gru(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=words.shape[1])
        return self.output(self.dropout(states))


def sentence_loss(logits: Tensor, tags: Tensor) -> Tensor:
    """Mean over the sentences of the mean over their words, so that equal batches weigh the same."""
    per_word = F.cross_entropy(logits.transpose(1, 2), tags, ignore_index=IGNORE, reduction="none")
    words = (tags != IGNORE).sum(dim=1)
    return (per_word.sum(dim=1) / words).mean()
