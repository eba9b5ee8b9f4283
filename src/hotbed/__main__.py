"""Entry of `python -m hotbed`, which the C launcher executes."""

from hotbed.cli.main import main

if __name__ == "__main__":
    main()
