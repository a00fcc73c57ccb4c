"""Small files of every kind that `read` knows, as bytes."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile

from torchtriage.examine.artefact.crc import masked

TRACE = json.dumps({"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "aten::add", "ts": 1, "dur": 2}]}).encode()
SNAPSHOT = pickle.dumps({"segments": [{"device": 0, "total_size": 2, "blocks": []}], "device_traces": [[]]})
FLIGHT = pickle.dumps({"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "", "ranks": "[0]"}}, "entries": []})
LOG = b"epoch 1 loss 0.5\nepoch 2 loss 0.4\n"
TABLE = b"epoch,step,train_loss\n0,1,0.5\n0,2,0.4\n"
SAFETENSORS = struct.pack("<Q", 20) + b'{"__metadata__":{}}  '


def record(data: bytes) -> bytes:
    """DATA as one record of a TFRecord file."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def zipped(**files: bytes) -> bytes:
    """A zip file with FILES; __ in a name stands for a slash, an underscore at its end for nothing."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as whole:
        for name, data in files.items():
            # of 1980, not of now: two workers that collect tests in other seconds would see other names of cases
            whole.writestr(zipfile.ZipInfo(name.replace("__", "/")), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


CURVES = record(b"\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x1a\x0dbrain.Event:2")
CHECKPOINT = zipped(**{"archive/data.pkl": pickle.dumps({"a": 1}), "archive/version": b"3"})
