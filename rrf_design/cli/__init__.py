"""The command line: one file per verb, each a thin wrapper that reads, calls the library and
prints.

`main` is the entry point: it turns every error a user can act on into one line and an exit code.
"""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> None:
    """Run `rrf-design`; exit codes: 0 yes, 1 no, 2 wrong input or call, 130 interrupted."""
    from rrf_design.cli.app import app
    from rrf_design.errors import RRFError

    try:
        code = app(args=arguments, prog_name="rrf-design", standalone_mode=False)
    except RRFError as error:
        print(f"rrf-design: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except Exception as error:
        message = getattr(error, "format_message", None)  # what every version of typer calls a wrong call
        if message is None:
            raise
        print(_one_line(error, message()), file=sys.stderr)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _one_line(error: Exception, message: str) -> str:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        return message  # the help itself: nothing was asked for
    path = "rrf-design" if context is None else context.command_path
    return f"{path}: {' '.join(message.split())} (see {path} --help)"
