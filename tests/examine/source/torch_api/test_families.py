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
        ("SIZED_FACTORIES", {"zeros", "rand", "full"}, {"tensor", "from_numpy", "zeros_like"}),
        ("LIKE_FACTORIES", {"zeros_like", "randn_like"}, {"zeros"}),
        ("NEW_METHODS", {"new_zeros", "new_tensor"}, {"zeros_like"}),
        ("METADATA", {"shape", "dtype", "device", "requires_grad"}, {"T", "data"}),
        ("VALUE_METHODS", {"size", "item", "numel", "data_ptr"}, {"detach", "sum"}),
        ("GRAPH_CUTS", {"detach", "item", "argmax", "eq", "long", "new_zeros"}, {"round", "mean"}),
        ("SPLITS", {"chunk", "split", "unbind"}, {"topk"}),
        ("GRAPHLESS_FUNCTIONS", {"argmax", "eq", "bincount"}, {"zeros", "zeros_like", "exp"}),
        ("DETACHING", {"detach", "detach_"}, {"item", "bool", "argmax"}),
        ("JOINS", {"cat", "stack", "hstack"}, {"einsum", "meshgrid"}),
    ],
)
def test_a_family_holds_what_its_name_says(family: str, inside: set[str], outside: set[str]) -> None:
    found = getattr(families, family)
    assert inside <= found
    assert not outside & found
