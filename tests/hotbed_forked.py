"""What tests/fork_server.py imports to fork processes of `hotbed`: the command line, and where it finds torch."""

from __future__ import annotations

import os
from importlib import import_module

from hotbed import phantom
from hotbed.cli.main import VERBS
from tests.forking import Forks

for module, _ in VERBS.values():
    import_module(module)
for module in (
    "cli.fitting",
    "predicting.predictor",
    "replaying",
    "tuning",
    "trace",
    "reporting",
    "settings.toml",
):
    import_module(f"hotbed.{module}")
phantom.start = Forks.from_json(os.environ["HOTBED_TEST_FORKS"]).start
