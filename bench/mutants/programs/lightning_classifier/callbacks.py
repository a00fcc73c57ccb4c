import lightning as L
import torch


class EpochReport(L.Callback):
    """Prints the figures of an epoch when its training and its validation are over."""

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        figures = trainer.callback_metrics
        names = ("train_loss", "train_acc", "val_loss", "val_acc")
        values = "  ".join(f"{name}: {figures[name].item():.4f}" for name in names if name in figures)
        rank_zero_line(trainer, f"epoch {trainer.current_epoch + 1:2d}/{trainer.max_epochs}  {values}")


class RandomState(L.Callback):
    """Keeps torch's random state in the checkpoints, so that dropout goes on where it stood."""

    def state_dict(self) -> dict:
        return {"torch": torch.get_rng_state()}

    def load_state_dict(self, state_dict: dict) -> None:
        torch.set_rng_state(state_dict["torch"].cpu())


def rank_zero_line(trainer: L.Trainer, text: str) -> None:
    if trainer.is_global_zero:
        print(text, flush=True)
