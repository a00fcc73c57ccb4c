from gnn.engine import evaluate, train_one_epoch
from gnn.graphs import Graph, GraphBatch, GraphDataset, TargetScaler, collate_graphs
from gnn.model import GraphRegressor

__all__ = [
    "Graph",
    "GraphBatch",
    "GraphDataset",
    "GraphRegressor",
    "TargetScaler",
    "collate_graphs",
    "evaluate",
    "train_one_epoch",
]
