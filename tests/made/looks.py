"""Looks at plain data that were unpickled in a process of their own; tests name them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def whole(loaded: Any, size: int) -> Any:
    return loaded


def kind(loaded: Any, size: int) -> str:
    return type(loaded).__name__


def strange(loaded: Any, size: int) -> Any:
    raise ValueError("not what is wanted")


def circular(loaded: Any, size: int) -> Any:
    loaded.append(loaded)
    return loaded


def writes(loaded: Any, size: int) -> Any:
    Path("written").write_text("harm")


def starts(loaded: Any, size: int) -> Any:
    return os.system("true")


def connects(loaded: Any, size: int) -> Any:
    import socket

    socket.create_connection(("127.0.0.1", 9))


def dies(loaded: Any, size: int) -> Any:
    os._exit(3)
