import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

from recordings import simulate


class RecordingsDataModule(L.LightningDataModule):
    def __init__(
        self,
        train_size: int = 1024,
        val_size: int = 384,
        batch_size: int = 64,
        num_workers: int = 0,
        data_seed: int = 17,
        shuffle_seed: int = 0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.generator = torch.Generator().manual_seed(shuffle_seed)

    def setup(self, stage: str) -> None:
        hp = self.hparams
        train_x, train_y = simulate(hp.train_size, seed=hp.data_seed)
        val_x, val_y = simulate(hp.val_size, seed=hp.data_seed + 1)
        mean = train_x.mean(dim=(0, 2), keepdim=True)
        std = train_x.std(dim=(0, 2), keepdim=True)
        self.train_set = TensorDataset((train_x - mean) / std, train_y)
        self.val_set = TensorDataset((val_x - mean) / std, val_y)

    def train_dataloader(self) -> DataLoader:
        return DataLoader(
            self.train_set,
            batch_size=self.hparams.batch_size,
            shuffle=True,
            drop_last=True,
            num_workers=self.hparams.num_workers,
            generator=self.generator,
        )

    def val_dataloader(self) -> DataLoader:
        return DataLoader(self.val_set, batch_size=128, num_workers=self.hparams.num_workers)

    def state_dict(self) -> dict:
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state_dict: dict) -> None:
        self.generator.set_state(state_dict["generator"].cpu())
