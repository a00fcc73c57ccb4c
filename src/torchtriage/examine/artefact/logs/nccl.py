"""What NCCL tells of itself with NCCL_DEBUG=INFO: its version, the network it took, and the ways between ranks."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

_VERSION = re.compile(r"NCCL version ([\w.+-]{1,40})")
_NETWORK = re.compile(r"Using (?:network|NET plugin) ([\w /-]{1,40})|NET/(IB|Socket) : Using \[")
_WAY = re.compile(r" via (P2P|SHM|NET)/?(\w{0,12})")
_MISSING = re.compile(r"(NET/IB : No device found|NCCL_IB_DISABLE set by environment)")


@dataclass
class Nccl:
    """Told as far as the lines go."""

    version: str = ""
    networks: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)

    def takes(self, text: str) -> bool:
        """Whether TEXT is an INFO line of NCCL, or the line with its version."""
        if "NCCL" not in text:
            return False
        if found := _VERSION.search(text):
            self.version = self.version or found[1]
        if "NCCL INFO" not in text:
            return bool(found)
        if network := _NETWORK.search(text):
            self.networks[(network[1] or network[2]).strip()] += 1
        if way := _WAY.search(text):
            self.ways[f"{way[1]}/{way[2]}" if way[1] == "NET" else way[1]] += 1
        if missing := _MISSING.search(text):
            self.missing[missing[1]] += 1
        return True

    def told(self) -> dict[str, Any]:
        """Version, networks, and how many connections go which way; {} where NCCL told nothing."""
        known = {
            "version": self.version,
            "networks": dict(sorted(self.networks.items())),
            "connections": dict(sorted(self.ways.items())),
            "missing": sorted(self.missing),
        }
        return {name: value for name, value in known.items() if value}
