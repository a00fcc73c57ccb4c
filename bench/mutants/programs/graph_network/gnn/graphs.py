"""Random graphs with typed nodes and weighted edges, and their batching.

The target of a graph is an energy: a sum over its nodes and over its edges, where the term of an
edge depends on the types of both ends, and that of a node on how many neighbours it has.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

NODE_TYPES = 4
_NODE_ENERGY = np.array([0.2, -0.5, 0.8, 0.1])
_PAIR_ENERGY = np.array(
    [
        [1.0, -0.6, 0.3, 0.0],
        [-0.6, 0.4, -1.0, 0.7],
        [0.3, -1.0, -0.2, 0.9],
        [0.0, 0.7, 0.9, -0.8],
    ]
)


@dataclass(frozen=True)
class Graph:
    node_type: Tensor  # (nodes,)
    edge_index: Tensor  # (2, edges): sources and targets, both directions of every bond
    edge_weight: Tensor  # (edges, 1)
    target: Tensor  # ()


@dataclass(frozen=True)
class GraphBatch:
    """Several graphs as one with unconnected parts; ``graph_index`` tells the graph of a node."""

    node_type: Tensor
    edge_index: Tensor
    edge_weight: Tensor
    graph_index: Tensor
    target: Tensor

    @property
    def num_graphs(self) -> int:
        return len(self.target)

    def to(self, device: torch.device) -> "GraphBatch":
        return GraphBatch(**{name: value.to(device) for name, value in vars(self).items()})


def random_graph(rng: np.random.Generator) -> Graph:
    nodes = int(rng.integers(6, 13))
    types = rng.integers(0, NODE_TYPES, nodes)
    # a random tree keeps the graph connected, further bonds close rings
    parents = [int(rng.integers(0, node)) for node in range(1, nodes)]
    bonds = {(parent, node) for node, parent in enumerate(parents, start=1)}
    for _ in range(int(rng.integers(0, 4))):
        first, second = sorted(rng.choice(nodes, size=2, replace=False).tolist())
        bonds.add((first, second))

    source, target = np.array(sorted(bonds)).T
    weight = rng.uniform(0.5, 1.5, len(source))
    degree = np.bincount(np.concatenate([source, target]), minlength=nodes)
    energy = (_PAIR_ENERGY[types[source], types[target]] * weight).sum()
    energy += (_NODE_ENERGY[types] * np.log1p(degree)).sum()

    both_ways = np.stack([np.concatenate([source, target]), np.concatenate([target, source])])
    return Graph(
        node_type=torch.from_numpy(types),
        edge_index=torch.from_numpy(both_ways),
        edge_weight=torch.from_numpy(np.tile(weight, 2).astype(np.float32)).unsqueeze(1),
        target=torch.tensor(energy, dtype=torch.float32),
    )


class GraphDataset(Dataset):
    def __init__(self, count: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.graphs = [random_graph(rng) for _ in range(count)]

    def __len__(self) -> int:
        return len(self.graphs)

    def __getitem__(self, index: int) -> Graph:
        return self.graphs[index]

    def targets(self) -> Tensor:
        return torch.stack([graph.target for graph in self.graphs])


def collate_graphs(graphs: list[Graph]) -> GraphBatch:
    sizes = torch.tensor([len(graph.node_type) for graph in graphs])
    offsets = (sizes.cumsum(0) - sizes).tolist()
    return GraphBatch(
        node_type=torch.cat([graph.node_type for graph in graphs]),
        edge_index=torch.cat([graph.edge_index + offset for graph, offset in zip(graphs, offsets, strict=True)], dim=1),
        edge_weight=torch.cat([graph.edge_weight for graph in graphs]),
        graph_index=torch.repeat_interleave(torch.arange(len(graphs)), sizes),
        target=torch.stack([graph.target for graph in graphs]),
    )


@dataclass(frozen=True)
class TargetScaler:
    """Standardises targets with the statistics of the training part."""

    mean: float
    std: float

    @classmethod
    def fit(cls, targets: Tensor) -> "TargetScaler":
        return cls(targets.mean().item(), targets.std().item())

    def transform(self, targets: Tensor) -> Tensor:
        return (targets - self.mean) / self.std

    def inverse(self, values: Tensor) -> Tensor:
        return values * self.std + self.mean
