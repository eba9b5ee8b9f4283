"""hotbed.fit: what memory a program needs, found by running it on a phantom GPU."""

from hotbed.predicting.api import DEFAULT_GPU, fit
from hotbed.predicting.prediction import CategoryBytes, GpuFit, Overhead, Prediction, Range, StepPeak
from hotbed.predicting.predictor import Predictor, gpu_of
from hotbed.predicting.program import Program
from hotbed.predicting.running import RunOptions

__all__ = [
    "DEFAULT_GPU",
    "CategoryBytes",
    "GpuFit",
    "Overhead",
    "Prediction",
    "Predictor",
    "Program",
    "Range",
    "RunOptions",
    "StepPeak",
    "fit",
    "gpu_of",
]
