from transformers import BertConfig, BertForSequenceClassification

from arguments import ModelArguments
from corpus import PAD, TOPICS, VOCAB_SIZE


def build_model(args: ModelArguments, max_length: int) -> BertForSequenceClassification:
    config = BertConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=args.hidden_size,
        num_hidden_layers=args.num_hidden_layers,
        num_attention_heads=args.num_attention_heads,
        intermediate_size=args.intermediate_size,
        hidden_dropout_prob=args.dropout,
        attention_probs_dropout_prob=args.dropout,
        max_position_embeddings=max_length,
        pad_token_id=PAD,
        id2label=dict(enumerate(TOPICS)),
        label2id={topic: index for index, topic in enumerate(TOPICS)},
    )
    return BertForSequenceClassification(config)
