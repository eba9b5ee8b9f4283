"""The phantom GPU: runs unmodified CUDA programs on GPUs that are not there."""

from hotbed.phantom.environment import environment, spec_string
from hotbed.phantom.library import phantom_folder, phantom_library
from hotbed.phantom.start import start

__all__ = ["environment", "phantom_folder", "phantom_library", "spec_string", "start"]
