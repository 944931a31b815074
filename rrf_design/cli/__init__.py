"""The command line: one file per verb, each a thin wrapper that reads, calls the library and prints.

`main` is the entry point: it turns every error a user can act on into one line and an exit code.
"""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> None:
    """Run `rrf-design`; exit codes: 0 yes, 1 no, 2 wrong input or call."""
    from rrf_design.cli.app import app
    from rrf_design.errors import RRFError

    try:
        app(args=arguments, prog_name="rrf-design")
    except RRFError as error:
        print(f"rrf-design: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
