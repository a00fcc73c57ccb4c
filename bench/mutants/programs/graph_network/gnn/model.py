import torch
from torch import Tensor, nn

from gnn.graphs import NODE_TYPES, GraphBatch


def scatter_sum(values: Tensor, index: Tensor, size: int) -> Tensor:
    """Adds up the rows of ``values`` that have the same index."""
    return values.new_zeros(size, values.shape[1]).index_add(0, index, values)


class MessagePassing(nn.Module):
    """Messages of the neighbours along weighted edges, summed, and a gated update of the node."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.message = nn.Sequential(
            nn.Linear(2 * width + 1, width),
            nn.SiLU(),
            nn.Linear(width, width),
        )
        self.update = nn.GRUCell(width, width)

    def forward(self, nodes: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        source, target = edge_index
        pair = torch.cat([nodes[source], nodes[target], edge_weight], dim=1)
        incoming = scatter_sum(self.message(pair), target, len(nodes))
        return self.update(incoming, nodes)


class GraphRegressor(nn.Module):
    def __init__(self, width: int = 32, depth: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(NODE_TYPES, width)
        self.layers = nn.ModuleList([MessagePassing(width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.readout = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))
        self.typical_size = 9.0

    def forward(self, batch: GraphBatch) -> Tensor:
        """One value per graph: the terms of its nodes, added up."""
        nodes = self.embedding(batch.node_type)
        for layer in self.layers:
            nodes = layer(nodes, batch.edge_index, batch.edge_weight)
        terms = self.readout(self.norm(nodes))
        return scatter_sum(terms, batch.graph_index, batch.num_graphs).squeeze(1) / self.typical_size
