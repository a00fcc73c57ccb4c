"""What a checkpoint may name. What stands here is data to every loader; of all else its code would have to be run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from msgspec import Struct

from torchtriage.examine.artefact.checkpoint.builders import BUILDERS
from torchtriage.examine.artefact.checkpoint.tensors import SIZES, STORAGES

_KINDS = ("torch", "torch.sparse", "torch.cuda", "torch.cuda.sparse")
_DATA = frozenset(
    {
        *BUILDERS,
        *(f"torch.{name}" for name in (*SIZES, *STORAGES)),
        *(f"torch.cuda.{name}" for name in STORAGES),
        *(f"{home}.{name.removesuffix('Storage')}Tensor" for home in _KINDS for name in STORAGES),
        *(f"torch.{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)),
        *(f"torch.{name}" for name in ("bits1x8", "bits2x4", "bits4x2", "bits16")),
        *(
            f"torch.{name}"
            for name in ("per_tensor_symmetric", "per_channel_symmetric", "per_channel_affine_float_qparams")
        ),
        *(f"torch.storage.{name}" for name in ("UntypedStorage", "TypedStorage")),
        *(f"torch.{name}" for name in ("strided", "sparse_coo", "sparse_csr", "contiguous_format", "preserve_format")),
        *(f"torch.{name}" for name in ("per_tensor_affine", "per_channel_affine", "device", "Tensor", "Generator")),
        *("torch._tensor.Tensor", "torch.serialization._get_layout", "torch._C._nn.Parameter"),
        *("numpy.ndarray", "numpy.dtype", "numpy.random.mtrand.RandomState", "builtins.complex", "builtins.set"),
        *("__builtin__.set", "__builtin__.complex", "builtins.frozenset", "builtins.slice", "builtins.range"),
        *(f"builtins.{name}" for name in ("int", "float", "str", "bool", "list", "dict", "tuple", "bytes", "object")),
        *(f"__builtin__.{name}" for name in ("int", "long", "float", "str", "bool", "list", "dict", "unicode")),
        *(f"datetime.{name}" for name in ("datetime", "date", "time", "timedelta", "timezone")),
        *(f"{home}.{name}" for home in ("pathlib", "pathlib._local") for name in ("PosixPath", "WindowsPath", "Path")),
        *("pathlib.PurePosixPath", "pathlib.PureWindowsPath", "pathlib._local.PurePosixPath"),
    }
)
_METADATA = frozenset(
    {
        *("Metadata", "MetadataIndex", "TensorStorageMetadata", "BytesStorageMetadata", "ChunkStorageMetadata"),
        *("TensorProperties", "StorageMeta", "_MEM_FORMAT_ENCODING"),
    }
)
_HOMES = {  # modules of which classes are data: what is told of shards, and of tensors that are spread over ranks
    "torch.distributed.checkpoint.metadata": _METADATA,
    "torch.distributed.checkpoint.filesystem": frozenset({"_StorageInfo", "StorageMeta"}),
    "torch.distributed.checkpoint._hf_utils": frozenset({"_HFStorageInfo"}),
    "torch.distributed._shard.sharded_tensor.metadata": frozenset({"TensorProperties", "MEM_FORMAT_ENCODING"}),
    "torch.distributed.tensor": frozenset({"DTensor", "DeviceMesh", "Shard", "Replicate", "Partial"}),
    "torch.distributed.tensor._api": frozenset({"DTensor"}),
    "torch.distributed.tensor._dtensor_spec": frozenset({"DTensorSpec", "TensorMeta", "ShardOrderEntry"}),
    "torch.distributed._mesh_layout": frozenset({"_MeshLayout", "_FlatLayout"}),
    "torch.nested._internal.nested_tensor": frozenset({"NestedTensor", "_rebuild_njt"}),
    "torch.distributed.tensor.placement_types": frozenset({"Shard", "Replicate", "Partial", "_StridedShard"}),
    "torch.distributed.device_mesh": frozenset({"DeviceMesh"}),
}
_ENUMS = frozenset({"torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING"})
_OBJECTS = frozenset(  # of the standard library, and harmless: yet torch's safe default refuses them
    {
        *("argparse.Namespace", "types.SimpleNamespace", "functools.partial", "collections.deque", "decimal.Decimal"),
        *("uuid.UUID", "fractions.Fraction", "copyreg._reconstructor", "copy_reg._reconstructor", "enum.Enum"),
        *("_operator.itemgetter", "_operator.attrgetter", "operator.itemgetter", "operator.attrgetter"),
        *("numpy.random._pickle.__generator_ctor", "numpy.random._pickle.__bit_generator_ctor"),
        *("numpy.random._pickle.__randomstate_ctor", "random.Random", "logging.getLogger", "inspect._empty"),
        *("builtins.getattr", "__builtin__.getattr"),  # of an Enum's member; what it gives is judged by its own name
        *("builtins.type", "builtins.print", "builtins.property", "builtins.Ellipsis", "builtins.NotImplemented"),
        *("torch._C._nn.gelu", "torch._C.Generator", "torch._tensor._rebuild_from_type"),
    }
)  # fmt: skip
_OBJECTS_NOT_CALLED = frozenset(
    {"builtins.type", "builtins.print", "builtins.getattr", "__builtin__.getattr", "logging.getLogger"}
)


class Foreign(Struct, frozen=True):
    """What a pickle names beyond data, each with the byte where it asks for it.

    code: what runs code of its own as soon as the file is loaded; objects: classes whose code must be there, and is
    run, for the file to be loaded.
    """

    code: tuple[tuple[str, int], ...] = ()
    objects: tuple[tuple[str, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.code or self.objects)


def foreign(names: Mapping[str, int], called: Mapping[str, int]) -> Foreign:
    """What of NAMES, and of what is CALLED, is no data."""
    code = [(name, at) for name, at in {**names, **called}.items() if _is_code(name, name in called)]
    known = {name for name, _ in code}
    objects = [(name, at) for name, at in _beyond({**names, **called}) if name not in known]
    return Foreign(tuple(code), tuple(objects))


def _beyond(names: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    yield from ((name, at) for name, at in names.items() if not is_data(name))


def is_data(name: str) -> bool:
    """Whether NAME is on the list."""
    home, _, last = name.rpartition(".")
    return name in _DATA or last in _HOMES.get(home, ()) or (home in _ENUMS and last.isupper())


def _is_code(name: str, is_called: bool) -> bool:
    """A function is called, anything of the standard library is named that is no data, or a result is called."""
    if is_data(name) or name == "a persistent id":
        return False
    if name in _OBJECTS:
        return is_called and name in _OBJECTS_NOT_CALLED
    home, _, last = name.rpartition(".")
    if name.endswith("(…)") or not home or name.startswith("extension "):
        return True
    top = home.partition(".")[0]
    if top in sys.stdlib_module_names or top in _OLD_LIBRARY:
        return True
    return is_called and not last.lstrip("_")[:1].isupper()


_OLD_LIBRARY = frozenset({"__builtin__", "commands", "copy_reg", "nt", "posix", "urllib2", "distutils"})
