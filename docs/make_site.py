"""Lays out the pages of the docs site in `.site/pages`: `make site` does it, and builds them.

`python docs/make_site.py --searched` says which verbs and public names the search of the built site
does not know.

Pages are the Markdown of the repository as it is, in the same folders, so that every link leads
where it leads there. Only the API reference is cut: a page for each package.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / ".site" / "pages"
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[Path]:
    """The files that a page leads to."""
    found = LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    return [(page.parent / target).resolve() for target in found if not re.match(r"[a-z]+:", target)]


def lay_out(pages: Path) -> list[Path]:
    """Copy the README, the documentation, and all that they lead to; the pages among them."""
    shutil.rmtree(pages, ignore_errors=True)
    waiting = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    copied: dict[Path, Path] = {}
    while waiting:
        path = waiting.pop()
        if path in copied or not path.is_file():
            continue
        copied[path] = pages / path.relative_to(ROOT)
        copied[path].parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copied[path])
        if path.suffix == ".md":
            waiting += links(path)
    made = [place for place in copied.values() if place.suffix == ".md"]
    return sorted([*made, *cut_api(pages / "docs" / "api.md")])


def cut_api(page: Path) -> list[Path]:
    """A page for each package, and in place of the whole reference the list of them."""
    head, *parts = re.split(r"^## `", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    listed, made = [], []
    (page.parent / "api").mkdir()
    for part in parts:
        name, _, rest = part.partition("`\n")
        listed.append(f"- [`{name}`](api/{name}.md)")
        text = LINK.sub(lambda found: f"](../{found[0][2:]}" if ":" not in found[1] else found[0], rest)
        made.append(page.parent / "api" / f"{name}.md")
        made[-1].write_text(f"# {name}\n{text}", encoding="utf-8")
    page.write_text(head + "\n".join(listed) + "\n", encoding="utf-8")
    return made


def unknown(text: str) -> list[str]:
    """Verbs and public names that do not stand in a search index."""
    import rrf_design
    import solvers
    from rrf_design.cli.app import VERBS

    names = {*VERBS, *rrf_design.__all__, *solvers.__all__} - {"__version__"}
    words = set(re.findall(r"\w+", text))
    return sorted(names - words)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:] == ["--searched"]:
        missing = unknown((ROOT / ".site" / "out" / "search.json").read_text(encoding="utf-8"))
        sys.exit(f"the search does not know {', '.join(missing)}" if missing else 0)
    print(f"{len(lay_out(PAGES))} pages in {PAGES.relative_to(ROOT)}", file=sys.stderr)
