"""Entry of the command line: finds the verb, runs it, turns every error into words and an exit status."""

from __future__ import annotations

import io
import os
import sys
import traceback
from importlib import import_module

import click

from hotbed import __version__
from hotbed.errors import HotbedError

# Verb → (module with a click command named `command`, one line for `hotbed --help`).
# A verb's module, and whatever it imports, loads only when that verb is called.
VERBS = {
    "calibrate": ("hotbed.cli.calibrate", "Measure what driver calls and a context cost on this GPU."),
    "findings": (
        "hotbed.cli.findings",
        "Say what a trace shows: who holds memory, what is lost, what to change.",
    ),
    "fit": ("hotbed.cli.fit", "Say what memory a script needs, and which GPUs have it."),
    "gpus": ("hotbed.cli.gpus", "List the GPUs that hotbed knows, and where each figure comes from."),
    "guard": (
        "hotbed.cli.guard",
        "Run a program and watch what empties its cache, what grows, and why it runs out of memory.",
    ),
    "phantom": ("hotbed.cli.phantom", "Run programs on GPUs that are not there."),
    "report": ("hotbed.cli.report", "Write a trace as one HTML page: timeline, flame graph, memory map."),
    "record": ("hotbed.cli.record", "Run a program and record what its GPU memory is used for."),
    "replay": ("hotbed.cli.replay", "Replay a trace under other settings: peak, driver calls, OOM."),
    "settings": ("hotbed.cli.settings", "Explain an allocator settings string for a torch version."),
    "summary": (
        "hotbed.cli.summary",
        "Say what allocated and reserved mean at the end of a trace, and whether to act.",
    ),
    "trace": ("hotbed.cli.trace", "Show, convert and check recorded traces."),
    "tune": ("hotbed.cli.tune", "Find the allocator settings that suit a trace."),
}

EPILOG = """\b
Examples:
  hotbed fit train.py --lr 3e-4
  hotbed tune snapshot.pickle
  hotbed replay snapshot.pickle --settings expandable_segments:True --cap 15GiB
  hotbed settings check "max_split_size_mb:128" --torch 2.9
"""


class LazyGroup(click.Group):
    """A group that knows its verbs by name and imports one only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command = import_module(VERBS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, VERBS[verb][1]) for verb in sorted(VERBS)])


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hotbed")
def cli() -> None:
    """Memory-tuned runtime for PyTorch on CUDA.

    Answers with measurements, and without a GPU: which allocator settings to use, what they save and cost,
    and what a given card would have done.
    """


def main(args: list[str] | None = None) -> None:
    """Runs the command line and exits: 0 done, 1 the user can fix it, 2 usage or our fault, 3 the
    user's program failed, 130 on Ctrl-C."""
    _prepare_streams()
    try:
        code = cli.main(args, prog_name="hotbed", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.Abort:
        click.echo("interrupted", err=True)
        code = 130
    except HotbedError as error:
        _say(error.message, error.hint)
        code = error.exit_code
    except OSError as error:
        code = _failed_call(error)
    except SystemExit:
        # Verbs return their status. click and rich leave like this, with 1, when the reader of their output is gone.
        _drop_unwritten()
        code = 0
    except Exception:  # noqa: BLE001 - there is nobody above to leave it to
        traceback.print_exc()
        _say("this is a fault in hotbed, not in what you did", "report it with the lines above")
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


def _prepare_streams() -> None:
    """Makes writing safe whatever the shell closed, and whatever a terminal or a file name cannot spell."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - they live as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _say(message: str, hint: str | None) -> None:
    click.echo(f"error: {message}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)


def _failed_call(error: OSError) -> int:
    """Words for what the system refused, and the exit status: 0 where only the reader (head, less) went away."""
    _drop_unwritten()
    if isinstance(error, BrokenPipeError):
        return 0
    where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
    _say(f"{where}{error.strerror or error}", None)
    return 1


def _drop_unwritten() -> None:
    """What could not be written stays in the buffer: the interpreter would complain about it once more at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
