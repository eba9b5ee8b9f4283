"""GPU facts: the catalogue, what driver calls cost, and live values; "unknown" is a value."""

from hotbed.gpu.catalogue import DEFAULT_GPU, catalogue, find_gpu
from hotbed.gpu.driver_costs import CallCost, DriverCosts, costs_for
from hotbed.gpu.model import Gpu, Layout, Source

__all__ = [
    "DEFAULT_GPU",
    "CallCost",
    "DriverCosts",
    "Gpu",
    "Layout",
    "Source",
    "catalogue",
    "costs_for",
    "find_gpu",
]
