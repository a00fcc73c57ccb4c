from dataclasses import dataclass, field

from transformers import HfArgumentParser


@dataclass
class RunArguments:
    out: str = field(metadata={"help": "Folder for checkpoints and results."})
    seed: int = field(default=0, metadata={"help": "Seed of the weights, of dropout and of the order of the data."})
    resume: bool = field(default=False, metadata={"help": "Continue from the newest checkpoint in the folder."})


@dataclass
class DataArguments:
    train_examples: int = 768
    eval_examples: int = 256
    data_seed: int = 31
    min_length: int = 12
    max_length: int = 24


@dataclass
class ModelArguments:
    hidden_size: int = 64
    num_hidden_layers: int = 2
    num_attention_heads: int = 2
    intermediate_size: int = 128
    dropout: float = 0.1


@dataclass
class OptimizationArguments:
    epochs: int = 4
    batch_size: int = 32
    learning_rate: float = 5e-3
    warmup_steps: int = 10
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    logging_steps: int = 12


def parse_arguments() -> tuple[RunArguments, DataArguments, ModelArguments, OptimizationArguments]:
    parser = HfArgumentParser((RunArguments, DataArguments, ModelArguments, OptimizationArguments))
    return parser.parse_args_into_dataclasses()
