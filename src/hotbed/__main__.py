"""Entry of `python -m hotbed`. The `hotbed` command (native/launcher) starts cli.main itself."""

import os
import sys

if __name__ == "__main__":
    # `-m` puts the working folder first on the path. A user's click.py or trace.py there is none of ours, nor is a
    # pathlib.py or contextlib.py: until it is gone, only what is loaded anyway may be imported.
    try:
        if sys.path[0] == os.getcwd():  # noqa: PTH109
            del sys.path[0]
    except OSError:
        pass

    from hotbed.cli.main import main

    main()
