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
ALIAS_ATTRIBUTES = names(home="attribute", memory="alias")
"""Attributes that share the tensor's memory: T, data, real …"""
VIEW_ATTRIBUTES = names(home="attribute", memory="alias", gradient="kept")
"""Those that keep the graph, too."""
IN_PLACE_METHODS = names(home="method", memory="itself", writes="0")
"""Methods that change the tensor that they are called on, and return it."""
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
ZERO_GRADIENTS = names(home="method", gradient="zero", writes="-")
"""Methods whose derivative is zero almost everywhere: round, sign, floor …"""
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
INDEXED = names(home="method", trait="indices")
"""Methods that give values and their places, max and min for one dimension only."""
DIFFERENTIABLE = frozenset[str]().union(
    *(
        names(gradient=gradient, returns="tensor", writes="-", home=home)
        for gradient in ("kept", "zero")
        for home in ("torch", "method", "functional")
    )
)
"""Functions and methods whose result has the graph of what they are given, and is one tensor."""
RESULT_SAVING = names(trait="saves") & (names(trait="pointwise") | names(home="functional"))
"""Functions of one tensor, element by element or over one dimension, whose derivative is computed from their result."""
UPLOADS = DEVICE_MOVES - names(trait="sync")
"""Methods that bring a tensor to a device: to, cuda."""
DIMENSION_KEEPING = (
    (names(home="torch", returns="tensor") | names(home="method", returns="tensor"))
    - FACTORIES
    - DEVICE_MOVES
    - names(dtype="given")
    - names(trait="scalar")
    - names(trait="reduction")
)
"""Functions and methods that make a tensor with dimensions of such a tensor, on the same device."""
