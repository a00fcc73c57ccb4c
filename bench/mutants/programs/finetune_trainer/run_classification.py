"""Classifies synthetic documents by topic with a small BERT."""

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer_callback import PrinterCallback
from transformers.utils import logging as transformers_logging

from arguments import OptimizationArguments, RunArguments, parse_arguments
from corpus import PaddingCollator, TopicDataset
from metrics import compute_metrics
from modeling import build_model


class ReportCallback(TrainerCallback):
    """One line for every record of the trainer."""

    def on_log(self, args, state, control, logs=None, **kwargs):
        if not state.is_local_process_zero or not logs:
            return
        shown = {name: value for name, value in logs.items() if name in ("loss", "eval_loss", "eval_accuracy")}
        if shown:
            figures = "  ".join(f"{name} {float(value):.4f}" for name, value in shown.items())
            print(f"step {state.global_step:3d}  {figures}")


def training_arguments(run: RunArguments, optimization: OptimizationArguments) -> TrainingArguments:
    return TrainingArguments(
        output_dir=run.out,
        seed=run.seed,
        data_seed=run.seed,
        num_train_epochs=optimization.epochs,
        per_device_train_batch_size=optimization.batch_size,
        per_device_eval_batch_size=2 * optimization.batch_size,
        learning_rate=optimization.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=optimization.warmup_steps,
        weight_decay=optimization.weight_decay,
        max_grad_norm=optimization.max_grad_norm,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        greater_is_better=False,
        logging_steps=optimization.logging_steps,
        dataloader_num_workers=0,
        dataloader_pin_memory=torch.cuda.is_available(),
        disable_tqdm=True,
        report_to="none",
    )


def main() -> None:
    run, data, model_args, optimization = parse_arguments()
    transformers_logging.disable_progress_bar()
    set_seed(run.seed)

    train_dataset = TopicDataset(data.train_examples, data.min_length, data.max_length, seed=data.data_seed)
    eval_dataset = TopicDataset(data.eval_examples, data.min_length, data.max_length, seed=data.data_seed + 1)
    collator = PaddingCollator()
    longest = data.max_length + 2 + collator.multiple_of
    model = build_model(model_args, max_length=longest)
    print(f"{model.num_parameters()} parameters, {len(train_dataset)} documents to train on")

    trainer = Trainer(
        model=model,
        args=training_arguments(run, optimization),
        train_dataset=train_dataset,
        eval_dataset=eval_dataset,
        data_collator=collator,
        compute_metrics=compute_metrics,
        callbacks=[ReportCallback()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=run.resume)

    metrics = trainer.evaluate()
    trainer.save_metrics("eval", metrics)
    trainer.save_state()
    print(f"final: eval_accuracy {metrics['eval_accuracy']:.4f}  macro_f1 {metrics['eval_macro_f1']:.4f}")
    print(f"final: eval_loss {metrics['eval_loss']:.5f}")


if __name__ == "__main__":
    main()
