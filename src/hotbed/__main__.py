"""Entry of `python -m hotbed`, which the C launcher executes."""

import sys
from contextlib import suppress
from pathlib import Path

if __name__ == "__main__":
    # `-m` puts the working folder first on the path. A user's click.py or trace.py there is none of ours.
    with suppress(OSError):
        if sys.path[0] == str(Path.cwd()):
            del sys.path[0]

    from hotbed.cli.main import main

    main()
