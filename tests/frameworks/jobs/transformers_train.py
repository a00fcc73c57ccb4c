"""The Trainer of transformers trains a tiny random model: as it should be, or with a fault that the argument names."""

import sys
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

fault = sys.argv[1] if len(sys.argv) > 1 else ""


class Words(Dataset):
    """Sentences of eight words; what they are about is told by the first one."""

    def __init__(self, size):
        generator = torch.Generator().manual_seed(1)
        self.words = torch.randint(2, 30, (size, 8), generator=generator)
        self.about = (self.words[:, 0] > 15).long()

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        return {"input_ids": self.words[index], "labels": self.about[index]}


class Own(Trainer):
    def compute_loss(self, model, inputs, *args, **kwargs):
        if fault == "eval":
            model.eval()  # fault: eval
        return super().compute_loss(model, inputs, *args, **kwargs)


torch.manual_seed(0)
config = BertConfig(
    vocab_size=30,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
)
arguments = TrainingArguments(
    tempfile.mkdtemp(),
    per_device_train_batch_size=16,
    num_train_epochs=6,
    learning_rate=1e-2,
    report_to=[],
    save_strategy="no",
    eval_strategy="epoch",
    disable_tqdm=True,
    use_cpu=True,
    logging_steps=50,
)
Own(BertForSequenceClassification(config), arguments, train_dataset=Words(320), eval_dataset=Words(64)).train()
