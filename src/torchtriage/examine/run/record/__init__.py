"""The record of a run: what each rank wrote."""

from .record import SETTLED, Log, RankRecord, RunRecord

__all__ = ["SETTLED", "Log", "RankRecord", "RunRecord"]
