"""Operators that several rules ask for together, each family a query on the table."""

from __future__ import annotations

from torchtriage.examine.source.torch_api.operators import names

DTYPE_CASTS = names(home="method", memory="maybe", dtype="given") | frozenset().union(
    *(names(home="method", memory="maybe", dtype=each) for each in ("float64", "float32", "float16", "bfloat16"))
)
"""Methods that give a tensor with another dtype, and keep its graph: to, float, type_as …"""
DEVICE_MOVES = names(home="method", trait="moves")
"""Methods that give a tensor on another device: to, cuda, cpu."""
CASTS = DTYPE_CASTS | DEVICE_MOVES
INTEGER_CASTS = names(home="method", gradient="cut", memory="maybe", dtype="int64") | frozenset().union(
    *(names(home="method", gradient="cut", dtype=each) for each in ("int32", "int16", "int8", "uint8"))
)
"""Methods that give a tensor of whole numbers: long, int, byte …"""
VIEWS = names(home="method", returns="tensor", memory="alias", gradient="kept")
"""Methods that give the same memory in another shape."""
RESHAPES = VIEWS | names(home="method", returns="tensor", memory="maybe", gradient="kept", dtype="same") - DEVICE_MOVES
"""Methods that give the same values in another shape, or the very same tensor: contiguous, reshape …"""
FACTORIES = names(home="torch", trait="factory")
"""Functions of torch that make a tensor from none."""
SIZED_FACTORIES = FACTORIES - names(trait="converts")
"""Those that take no data of the host: zeros, rand, arange …"""
LIKE_FACTORIES = frozenset(
    name for name in names(home="torch", gradient="cut", memory="fresh") if name.endswith("_like")
)
"""Functions of torch that make a tensor in the form of another one."""
NEW_METHODS = frozenset(name for name in names(home="method", gradient="cut", memory="fresh") if name.startswith("new"))
"""Methods that make a tensor with dtype and device of another one."""
METADATA = names(home="attribute", returns="value")
"""Attributes that are no tensors: shape, dtype, device …"""
VALUE_METHODS = names(home="method", returns="value")
"""Methods that give what is no tensor: size, item, data_ptr …"""
GRAPH_CUTS = names(home="method", gradient="cut")
"""Methods whose result has no graph: detach, item, argmax, long …"""
SPLITS = names(home="method", returns="tensors", memory="alias")
"""Methods that give views of a tensor, several at once: split, chunk, unbind …"""
GRAPHLESS_FUNCTIONS = (
    (names(home="torch", gradient="cut") | names(home="torch", gradient="-")) - FACTORIES - LIKE_FACTORIES
)
"""Functions of torch whose result has no graph: argmax, eq, bincount …"""
DETACHING = frozenset[str]().union(*(names(home="method", gradient="cut", memory=each) for each in ("alias", "itself")))
"""Methods that give the same values without the graph: detach, detach_."""
JOINS = names(home="torch", trait="joins")
"""Functions of torch that make one tensor of a list of them: cat, stack …"""
UPLOADS = DEVICE_MOVES - names(trait="sync")
"""Methods that bring a tensor to a device: to, cuda."""
