"""Operations of torch that give a new tensor, by what else has methods and functions of their names."""

from __future__ import annotations

# Methods that give a new tensor and leave their own as it was; a module's to() and cuda() work in place. Not cpu(),
# which may stand alone to wait for the device.
METHODS = (
    *("to", "cuda", "float", "half", "double", "bfloat16", "long", "detach", "clamp", "clip", "contiguous"),
    *("view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "masked_fill", "type"),
    *("nan_to_num", "clamp_min", "clamp_max", "flatten", "abs", "sigmoid", "relu", "index_fill", "scatter"),
    *("bool", "int", "softmax", "log_softmax", "tanh", "exp", "log", "sqrt", "mul", "div", "sub", "neg", "round"),
    *(
        "expand",
        "repeat",
        "roll",
        "flip",
        "t",
        "scatter_add",
        "index_add",
        "index_copy",
        "masked_scatter",
        "type_as",
        "movedim",
    ),
)
FUNCTIONS = tuple(
    f"torch.{each}"
    for each in (
        *("clamp", "clip", "nan_to_num", "relu", "squeeze", "unsqueeze", "flatten", "permute", "transpose", "sigmoid"),
        *("abs", "exp", "log", "sqrt", "tanh", "softmax", "mul", "div", "sub", "add", "reshape", "round", "where"),
    )
) + tuple(
    f"torch.nn.functional.{each}"
    for each in (
        *("normalize", "relu", "dropout", "softmax", "log_softmax", "pad", "layer_norm", "sigmoid", "tanh", "gelu"),
    )
)
# Methods that tensors have and hardly anything else: where one stands alone, its operand needs no other sign.
SURE = frozenset(
    {"clamp", "clamp_min", "clamp_max", "masked_fill", "unsqueeze", "index_fill", "nan_to_num", "masked_scatter"}
    | {"scatter_add", "index_add", "index_copy", "log_softmax"}
)
# Those of what else a file may hold beside tensors, but neither a module nor a plain object that is computed with.
LIKELY = frozenset(
    {"detach", "contiguous", "permute", "squeeze", "view", "sigmoid", "float", "long", "double", "half", "to", "cuda"}
)
# Functions of torch that are given modules, files, lists and settings as well.
NOT_TENSORS = frozenset(
    {"compile", "save", "load", "tensor", "as_tensor", "from_numpy", "is_tensor", "manual_seed", "device", "vmap"}
)
TAILS = sorted({name.rpartition(".")[2] for name in FUNCTIONS})
