"""The parameters that torch's own layers register, in torch's order. tests/examine/source holds them to torch's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy

from torchtriage.examine.source.parameters.assembly import PLAIN, Lost, Part, Value, Weight
from torchtriage.examine.source.torch_api.symbols import symbols

# What is counted: the places of the flags among the positional arguments.
_LINEAR = ("in", "out", "bias")
_CONV = ("in", "out", "kernel_size", "stride", "padding", "dilation", "groups", "bias")
_TRANSPOSED = ("in", "out", "kernel_size", "stride", "padding", "output_padding", "groups", "bias")
_NORM = ("num_features", "eps", "momentum", "affine")
_RECURRENT = ("input", "hidden", "num_layers", "bias", "batch_first", "dropout", "bidirectional", "proj_size")
_RNN = ("input", "hidden", "num_layers", "nonlinearity", "bias", "batch_first", "dropout", "bidirectional")
_ATTENTION = ("embed_dim", "num_heads", "dropout", "bias", "add_bias_kv", "add_zero_attn", "kdim", "vdim")
_LAYER = ("d_model", "nhead", "dim", "dropout", "activation", "eps", "batch_first", "norm_first", "bias")

FREE = symbols().parameterless_layers
CONTAINERS = symbols().registering_containers
# Layers into which modules go; what the others are given are numbers and words.
NESTING = CONTAINERS | {"TransformerEncoder", "TransformerDecoder", "Transformer", "DataParallel"}


class Given:
    """The arguments of one call of a layer. is_open: more may have been given than is seen here; why: in words."""

    def __init__(
        self, positional: list[Value], keywords: dict[str, Value], why: str = "", *, is_open: bool = False
    ) -> None:
        self.positional, self.keywords, self.why, self.is_open = positional, keywords, why, is_open

    def raw(self, words: tuple[str, ...], name: str, default: Value) -> Value:
        """The argument NAME; WORDS name the positional ones."""
        if self.is_open:
            return Lost(self.why)
        place = words.index(name) if name in words else len(self.positional)
        return self.positional[place] if place < len(self.positional) else self.keywords.get(name, default)

    def get(self, words: tuple[str, ...], name: str, default: Value) -> Value:
        """The argument NAME; Lost where its value cannot be told."""
        value = self.raw(words, name, default)
        return Lost(self.why) if value is PLAIN or isinstance(value, Lost) else value


def layer(name: str, given: Given) -> Part | None:
    """What torch.nn.NAME registers; None where that is not known here."""
    part = Part(kind=name)
    if name in FREE:
        return part
    if (fill := _FILLS.get(name)) is None:
        return None
    fill(part, given)
    return part


def _weights(part: Part, names: Iterable[str], flag: Value = True) -> None:
    for name in names:
        part.own[name] = flag if isinstance(flag, Lost) else Weight() if flag else None


def _plain(*names: str, words: tuple[str, ...] = (), affine: str = "", default: bool = True) -> Fill:
    """A layer of weights and a bias; AFFINE: the flag that all of them depend on, with its DEFAULT."""

    def fill(part: Part, given: Given) -> None:
        flag = given.get(words, affine, default) if affine else True
        _weights(part, (name for name in names if name != "bias"), flag)
        if "bias" in names:
            _weights(part, ["bias"], flag and (flag if isinstance(flag, Lost) else given.get(words, "bias", True)))

    return fill


def _cell(part: Part, given: Given) -> None:
    _weights(part, ("weight_ih", "weight_hh"))
    _weights(part, ("bias_ih", "bias_hh"), given.get(_LINEAR, "bias", True))


def _recurrent(words: tuple[str, ...]) -> Fill:
    def fill(part: Part, given: Given) -> None:
        layers, both = given.get(words, "num_layers", 1), given.get(words, "bidirectional", False)
        bias, projected = given.get(words, "bias", True), given.get(words, "proj_size", 0)
        for layer_ in range(layers if isinstance(layers, int) and layers < 10_000 else 1):
            for end in ("", "_reverse"):
                if end:
                    if isinstance(both, Lost):
                        part.lose(both)
                    if both is not True and both != 1:
                        continue
                last = f"l{layer_}{end}"
                _weights(part, (f"weight_ih_{last}", f"weight_hh_{last}"))
                _weights(part, (f"bias_ih_{last}", f"bias_hh_{last}"), bias)
                _weights(part, (f"weight_hr_{last}",), projected)
        if isinstance(layers, Lost):
            part.lose(layers)

    return fill


def _attention(part: Part, given: Given) -> None:
    bias, size = given.get(_ATTENTION, "bias", True), given.get(_ATTENTION, "embed_dim", None)
    sizes = [each for name in ("kdim", "vdim") if (each := given.get(_ATTENTION, name, None)) is not None]
    if any(isinstance(each, Lost) for each in (size, *sizes)) and sizes:
        part.lose(Lost(given.why))
    if all(each == size for each in sizes):
        _weights(part, ["in_proj_weight"])
    else:
        _weights(part, ("q_proj_weight", "k_proj_weight", "v_proj_weight"))
    _weights(part, ["in_proj_bias"], bias)
    _weights(part, ("bias_k", "bias_v"), given.get(_ATTENTION, "add_bias_kv", False))
    part.parts["out_proj"] = _of(("weight", True), ("bias", bias))


def _of(*flags: tuple[str, Value]) -> Part:
    part = Part()
    for name, flag in flags:
        _weights(part, [name], flag)
    return part


def _transformer(*attentions: str) -> Fill:
    """An encoder or decoder layer: its attentions, two linear layers, and a norm for each of them and one more."""

    def fill(part: Part, given: Given) -> None:
        bias, activation = given.get(_LAYER, "bias", True), given.raw(_LAYER, "activation", "relu")
        for name in attentions:
            _attention(_put(part, name), Given([], {"bias": bias}, given.why))
        for name in ("linear1", "linear2", *(f"norm{number}" for number in range(1, len(attentions) + 2))):
            part.parts[name] = _of(("weight", True), ("bias", bias))
        if isinstance(activation, Part | Lost):
            part.parts["activation"] = activation if isinstance(activation, Part) else Lost(given.why, module=True)

    return fill


def _put(part: Part, name: str) -> Part:
    inner = part.parts[name] = Part()
    return inner


def _stack(part: Part, given: Given) -> None:
    """TransformerEncoder and TransformerDecoder: copies of one layer, then a norm."""
    words = ("layer", "num_layers", "norm")
    key = next((name for name in ("encoder_layer", "decoder_layer") if name in given.keywords), "layer")
    one, count = given.get(words, key, None), given.get(words, "num_layers", None)
    one = given.positional[0] if given.positional else one
    if not isinstance(one, Part) or not isinstance(count, int) or count > 1000:
        part.lose(Lost(given.why, module=True))
        return
    held = _put(part, "layers")
    for _ in range(count):
        held.add(deepcopy(one))
    if (norm := given.get(words, "norm", None)) is not None:
        part.parts["norm"] = norm if isinstance(norm, Part) else Lost(given.why, module=True)


Fill = Callable[[Part, Given], None]
_AFFINE = _plain("weight", "bias", words=_NORM, affine="affine")
_INSTANCE = _plain("weight", "bias", words=_NORM, affine="affine", default=False)
_SHAPED = ("shape", "eps", "elementwise_affine", "bias")
_FILLS: dict[str, Fill] = {
    "Linear": _plain("weight", "bias", words=_LINEAR),
    "LazyLinear": _plain("weight", "bias", words=_LINEAR[1:]),
    "Bilinear": _plain("weight", "bias", words=("in1", "in2", "out", "bias")),
    "Embedding": _plain("weight"),
    "EmbeddingBag": _plain("weight"),
    "PReLU": _plain("weight"),
    "LayerNorm": _plain("weight", "bias", words=_SHAPED, affine="elementwise_affine"),
    "RMSNorm": _plain("weight", words=_SHAPED, affine="elementwise_affine"),
    "GroupNorm": _AFFINE,
    "SyncBatchNorm": _AFFINE,
    **{f"Conv{rank}d": _plain("weight", "bias", words=_CONV) for rank in (1, 2, 3)},
    **{f"ConvTranspose{rank}d": _plain("weight", "bias", words=_TRANSPOSED) for rank in (1, 2, 3)},
    **{f"BatchNorm{rank}d": _AFFINE for rank in (1, 2, 3)},
    **{f"InstanceNorm{rank}d": _INSTANCE for rank in (1, 2, 3)},
    "LSTM": _recurrent(_RECURRENT),
    "GRU": _recurrent(_RECURRENT[:-1]),
    "RNN": _recurrent(_RNN),
    "RNNCell": _cell,
    "LSTMCell": _cell,
    "GRUCell": _cell,
    "MultiheadAttention": _attention,
    "TransformerEncoderLayer": _transformer("self_attn"),
    "TransformerDecoderLayer": _transformer("self_attn", "multihead_attn"),
    "TransformerEncoder": _stack,
    "TransformerDecoder": _stack,
}
