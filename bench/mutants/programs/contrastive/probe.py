"""Linear evaluation: a logistic regression on frozen features."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


@torch.no_grad()
def extract_features(encoder: nn.Module, images: Tensor, batch_size: int = 256) -> Tensor:
    encoder.eval()
    return torch.cat([encoder(chunk) for chunk in images.split(batch_size)])


def standardise(train: Tensor, test: Tensor) -> tuple[Tensor, Tensor]:
    mean = train.mean(dim=0)
    std = train.std(dim=0).clamp(min=1e-6)
    return (train - mean) / std, (test - mean) / std


class LinearProbe:
    def __init__(self, epochs: int = 15, batch_size: int = 64, lr: float = 0.02, seed: int = 0) -> None:
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.seed = seed

    def fit(self, features: Tensor, labels: Tensor, num_classes: int) -> nn.Linear:
        generator = torch.Generator().manual_seed(self.seed)
        dataset = TensorDataset(features, labels)
        loader = DataLoader(dataset, batch_size=self.batch_size, shuffle=True, generator=generator)
        classifier = nn.Linear(features.shape[1], num_classes).to(features.device)
        optimizer = torch.optim.Adam(classifier.parameters(), lr=self.lr)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.epochs)
        for epoch in range(self.epochs):
            total = torch.zeros((), device=features.device)
            for batch, target in loader:
                loss = F.cross_entropy(classifier(batch), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.detach() * len(target)
            scheduler.step()
            if (epoch + 1) % 5 == 0:
                print(f"probe epoch {epoch + 1:2d} | loss {total.item() / len(dataset):.4f}")
        return classifier

    @torch.no_grad()
    def score(self, classifier: nn.Linear, features: Tensor, labels: Tensor) -> float:
        predicted = classifier(features).argmax(dim=1)
        return (predicted == labels).float().mean().item()


def evaluate_encoder(
    encoder: nn.Module,
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    num_classes: int,
    probe: LinearProbe,
) -> float:
    train_features = extract_features(encoder, train[0])
    test_features = extract_features(encoder, test[0])
    train_features, test_features = standardise(train_features, test_features)
    classifier = probe.fit(train_features, train[1], num_classes)
    return probe.score(classifier, test_features, test[1])
