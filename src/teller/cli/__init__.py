"""The command line: parses and prints, and leaves all else to the packages below."""

import errno
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from teller import __version__
from teller.cli import (
    collect,
    demo,
    diagnose,
    diff,
    doctor,
    evaluate,
    export,
    ingest,
    migrate,
    push,
    query,
    report,
    rules,
    runs,
    simulate,
    testbed,
    trace,
    train,
    ui,
    watch,
)
from teller.errors import TellerError

app = typer.Typer(
    name="teller", no_args_is_help=True, add_completion=False, rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog="Start here: teller demo, then teller diagnose YOUR_RUN_FOLDER",
)  # fmt: skip

_BROKEN_PIPE = 141  # what a shell gives a program that SIGPIPE ended


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"teller {__version__}")
        raise typer.Exit


@app.callback()
def _teller(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find the root cause of slow, uneven or hung multi-node LLM inference from its traces.

    Exit codes: 0 no fault from the severity of --fail-on up, 1 faults found, 2 nothing usable or
    wrong usage.
    """


for _module in (
    demo, doctor, collect, ingest, diagnose, watch, diff, report, trace, query, rules, runs,
    export, push, migrate, simulate, testbed, train, evaluate, ui,
):  # fmt: skip
    _module.add_to(app)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; our own errors are said in one plain line."""
    try:
        code = app(args=argv, prog_name="teller", standalone_mode=False)
        sys.stdout.flush()
    except TellerError as err:
        return _complain(str(err))
    except typer.TyperException as err:
        return _misused(err)
    except typer.Abort:
        return 130
    except BrokenPipeError:
        return _hung_up()
    except OSError as err:
        return _complain(_failed(err))
    except SystemExit as err:
        # typer itself ends the program with 1 then, which means faults here
        if isinstance(err.__context__, BrokenPipeError):
            return _hung_up()
        raise
    return code if isinstance(code, int) else 0


def run() -> None:
    """Run the command line of this process and exit with its code."""
    # a shell may close them (>&-); who does wants the exit code alone
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - the same
    for stream in (sys.stdout, sys.stderr):
        # a path may hold bytes that are no text, and a terminal may know ASCII alone
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main())


def _hung_up() -> int:
    # the interpreter's own flush at exit must not find the broken pipe again
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _BROKEN_PIPE


def _complain(message: str, hint: str = "") -> int:
    sys.stdout.flush()
    sys.stderr.write(f"teller: {message}\n{hint}")
    return 2


def _failed(err: OSError) -> str:
    """Say what the system refuses, where, and what to do."""
    what = f"{err.filename}: {err.strerror}" if err.filename else str(err.strerror or err)
    if err.errno == errno.ENOSPC:
        return f"{what}; make room, or name another place with --workspace"
    return f"{what}; look at that place and at your rights there"


def _misused(err: typer.TyperException) -> int:
    message = err.format_message().replace("Value error, ", "")
    if message.startswith("Usage: "):  # a command group alone: its help is the answer
        sys.stderr.write(f"{message}\n")
        return 2
    context = getattr(err, "ctx", None)
    return _complain(message, f"see {context.command_path} --help\n" if context else "")
