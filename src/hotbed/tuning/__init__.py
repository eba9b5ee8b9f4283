"""Tuning: searches allocator settings and a memory cap by exact replay."""

from hotbed.tuning.api import tune
from hotbed.tuning.recommendation import Advice, Choice, HeldOut, Margin, Recommendation

__all__ = ["Advice", "Choice", "HeldOut", "Margin", "Recommendation", "tune"]
