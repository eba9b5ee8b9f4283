"""Values that a program reads back from the device: learnt in one run, answered in another that no Python disturbs."""

from .session import STOPPED_EXIT_STATUS, Session, begin, switch

__all__ = ["STOPPED_EXIT_STATUS", "Session", "begin", "switch"]
