from .corpus import IGNORE, TAGS, VOCAB_SIZE, Batch, TaggedSentences, collate
from .metrics import SpanScore
from .model import Tagger, sentence_loss

__all__ = [
    "IGNORE",
    "TAGS",
    "VOCAB_SIZE",
    "Batch",
    "SpanScore",
    "TaggedSentences",
    "Tagger",
    "collate",
    "sentence_loss",
]
