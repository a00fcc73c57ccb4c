"""Families of operators hold what their names say."""

from __future__ import annotations

import pytest

from torchtriage.examine.source.torch_api import families


@pytest.mark.parametrize(
    ("family", "inside", "outside"),
    [
        ("DTYPE_CASTS", {"to", "float", "half", "type_as"}, {"cuda", "long", "clone"}),
        ("DEVICE_MOVES", {"to", "cuda", "cpu"}, {"float"}),
        ("UPLOADS", {"to", "cuda"}, {"cpu"}),
        ("INTEGER_CASTS", {"long", "int", "byte"}, {"bool", "argmax", "float"}),
        ("VIEWS", {"view", "expand", "t"}, {"reshape", "detach", "chunk"}),
        ("RESHAPES", {"view", "reshape", "contiguous", "flatten"}, {"clone", "to", "detach"}),
        ("ALIAS_ATTRIBUTES", {"data", "T"}, {"grad", "shape"}),
        ("VIEW_ATTRIBUTES", {"T", "mT"}, {"data"}),
        ("IN_PLACE_METHODS", {"add_", "copy_", "zero_"}, {"requires_grad_", "detach_"}),
        ("SIZED_FACTORIES", {"zeros", "rand", "full"}, {"tensor", "from_numpy", "zeros_like"}),
        ("LIKE_FACTORIES", {"zeros_like", "randn_like"}, {"zeros"}),
        ("NEW_METHODS", {"new_zeros", "new_tensor"}, {"zeros_like"}),
        ("METADATA", {"shape", "dtype", "device", "requires_grad"}, {"T", "data"}),
        ("VALUE_METHODS", {"size", "item", "numel", "data_ptr"}, {"detach", "sum"}),
        ("GRAPH_CUTS", {"detach", "item", "argmax", "eq", "long", "new_zeros"}, {"round", "mean"}),
        ("ZERO_GRADIENTS", {"round", "sign", "floor", "ceil", "trunc"}, {"argmax", "relu", "zero_"}),
        ("SPLITS", {"chunk", "split", "unbind"}, {"topk"}),
        ("GRAPHLESS_FUNCTIONS", {"argmax", "eq", "bincount"}, {"zeros", "zeros_like", "exp"}),
        ("DETACHING", {"detach", "detach_"}, {"item", "bool", "argmax"}),
        ("JOINS", {"cat", "stack", "hstack"}, {"einsum", "meshgrid"}),
        ("INDEXED", {"max", "topk", "sort", "kthvalue"}, {"frexp", "slogdet"}),
        ("DIFFERENTIABLE", {"exp", "round", "gelu", "cat"}, {"detach", "eq", "topk", "add_"}),
        ("RESULT_SAVING", {"sigmoid", "exp", "sqrt", "softmax", "log_softmax"}, {"log", "sin", "std"}),
        ("DIMENSION_KEEPING", {"exp", "cat", "view", "float"}, {"sum", "item", "to", "dot", "zeros"}),
    ],
)
def test_a_family_holds_what_its_name_says(family: str, inside: set[str], outside: set[str]) -> None:
    found = getattr(families, family)
    assert inside <= found
    assert not outside & found
