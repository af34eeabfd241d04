"""The command line: ``tfgw train``, ``evaluate``, ``predict``, ``embed``, ``check``, ``report``, ``gpu``, ``datasets``
and ``paper``.

Each command parses its options, calls the Python API, and returns a
:class:`CommandResult <tfgw.cli.output.CommandResult>`, which is printed here as text or as JSON.
"""

import json
import os
import sys
import warnings
from collections.abc import Sequence

from tfgw.cli.arguments import build_parser

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Return 0 on success, 1 on failure, and 130 after Ctrl-C. Invalid options exit with 2."""
    args = build_parser().parse_args(argv)
    args.arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            result = args.command(args)
        print(json.dumps(result.data) if args.json else result.text, flush=True)
        return int(result.code)
    except KeyboardInterrupt as interrupt:
        print("; ".join(["tfgw: interrupted", *map(str, interrupt.args)]), file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        if args.debug:
            raise
        print(f"tfgw: error: {_one_line(error)}", file=sys.stderr)
        return 1
    return 0


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"tfgw: warning: {' '.join(str(message).split())}", file=sys.stderr)


def _one_line(error: Exception) -> str:
    text = str(error).strip()
    if text and isinstance(error, ValueError | OSError | FloatingPointError | ImportError):
        return " ".join(text.split())
    last = text.splitlines()[-1] if text else ""  # the text of an error in a worker process ends with its traceback
    return f"{type(error).__name__}: {last} (use --debug for the traceback)"
