"""rrf-design studio: a local page that shows what was found out, and asks people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rrf_design.cli.output import Printer, print_json, say


def studio_verb(
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FOLDER|STORE|DOCUMENT]...",
            help="Folders, journals, stores of labels, documents or tables; this folder by default.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", help="Where to listen, on this machine only; 0: a free port.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address; open no browser.")] = False,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write the same as static pages into this folder, and stop.")
    ] = None,
    *,
    printer: Printer,
) -> None:
    """Look at documents, tables and runs in a browser, and let people answer what is open.

    Prints its address, with a token, on standard output. Only this machine can reach it; runs and
    tables are read and never written. Ctrl-C ends it.

    Example: rrf-design studio

    Example: rrf-design studio results --export pages
    """
    from rrf_design.studio import Library, serve
    from rrf_design.studio import export as write_pages

    library = Library(places or ["."])
    if export is not None:
        made = write_pages(library, export)
        printer.result({"pages": [str(path) for path in made]}, lambda: say(f"{len(made)} pages: open {made[0]}"))
        return

    def tell(address: str) -> None:
        if printer.as_json:
            print_json({"address": address})
        else:
            print(address, flush=True)
            printer.note("only this machine can reach it; Ctrl-C ends it")

    serve(library, port=port, open_browser=not no_browser and not printer.as_json, tell=tell)
