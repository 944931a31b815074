"""The house rules: who may import whom, what stays out until it is used, how large a file gets."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rrf_design

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {
    "numpy",
    "scipy",
    "numba",
    "ortools",
    "pulp",
    "pydantic",
    "sqlalchemy",
    "networkx",
    "matplotlib",
    "xllamacpp",
    "openai",
    "transformers",
    "torch",
    "rich",
    "typer",
    "flint",
    "joblib",
    "sklearn",
    "statsmodels",
}


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Absolute names of every module a file imports, anywhere in it, type checking included."""
    package = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def offenders(folder: str, forbidden: tuple[str, ...], *, allowed: tuple[str, ...] = ()) -> list[str]:
    found = []
    for path in sources(folder):
        if str(path.relative_to(ROOT)).startswith(allowed) and allowed:
            continue
        for name in imported(path):
            if any(name == bad or name.startswith(f"{bad}.") for bad in forbidden):
                found.append(f"{path.relative_to(ROOT)} imports {name}")
    return found


def test_solvers_know_nothing_of_the_rest() -> None:
    assert offenders("solvers", ("rrf_design", "scenarios")) == []


def test_risk_knows_nothing_of_the_rest_but_the_errors() -> None:
    own = ("rrf_design.risk", "rrf_design.errors")
    strangers = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources("rrf_design/risk")
        for name in imported(path)
        if name.split(".")[0] in ("rrf_design", "solvers", "scenarios") and not name.startswith(own)
    ]
    assert strangers == []


def test_the_library_knows_neither_scenarios_nor_the_command_line() -> None:
    assert offenders("rrf_design", ("scenarios", "rrf_design.cli"), allowed=("rrf_design/cli/",)) == []


SOLVING = (
    "solvers",
    "ortools",
    "rrf_design.planning",
    "rrf_design.certificates",
    "rrf_design.repairing",
    "rrf_design._explain",
)
SOLVING_TOO = (
    "rrf_design.acquisition",
    "rrf_design.models",
    "rrf_design.questions",
    "rrf_design.risk",
)
WRITERS = ("rrf_design.repairing.contract",)
"""What turns a result into its document, and solves nothing."""


def test_pages_are_made_from_documents_alone() -> None:
    found = [
        line
        for line in offenders("rrf_design/reporting", (*SOLVING, *SOLVING_TOO))
        if not line.split(" imports ")[1].startswith(WRITERS)
    ]
    assert found == []


def test_pages_solve_nothing() -> None:
    """No method that solves is called on a problem, a design or a structure either."""
    forbidden = {"margin", "margins", "plan", "frontier", "certify", "repair", "acquire", "explain"}
    forbidden |= {"standing", "robust_lower", "settled_margin"}
    for path in sources("rrf_design/reporting"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                assert name not in forbidden, f"{path.relative_to(ROOT)}, line {node.lineno}: calls {name}"


CHECKER = "rrf_design.checker"
CHECKER_MAY_USE = {"numpy", "scipy", "numba", "flint"}


def test_the_checker_could_be_shipped_alone() -> None:
    """It imports the standard library, four packages, the errors of the house and itself: no
    solver, no issuer.
    """
    files = sources(CHECKER.replace(".", "/"))
    assert any(path.name == "verifier.py" for path in files)
    for path in files:
        for name in imported(path):
            first = name.split(".")[0]
            inside = name == CHECKER or name.startswith((f"{CHECKER}.", "rrf_design.errors"))
            allowed = inside or first in CHECKER_MAY_USE or first in sys.stdlib_module_names
            assert allowed, f"{path.relative_to(ROOT)} imports {name}"


def test_the_checker_is_shipped_alone(tmp_path: Path) -> None:
    """Copied with nothing but the errors it raises, it still refuses."""
    import shutil

    for folder in ("rrf_design",):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("")
    shutil.copy(ROOT / "rrf_design" / "errors.py", tmp_path / "rrf_design")
    shutil.copytree(
        ROOT / CHECKER.replace(".", "/"),
        tmp_path / CHECKER.replace(".", "/"),
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (tmp_path / "c.json").write_text("{}")
    code = f"from {CHECKER} import verify; print(verify('c.json').reason)"
    made = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert made.stdout.startswith("not a certificate"), made.stderr


def test_a_promise_is_re_proved_without_what_proves_certificates() -> None:
    """A policy or an audit needs counts and words: no operator, no compiler, no search."""
    code = f"import sys, {CHECKER}.promises; print(*(name for name in sys.modules if name.startswith('{CHECKER}.')))"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    parts = {name.removeprefix(f"{CHECKER}.") for name in made.stdout.split()}
    assert parts == {"_forms", "_tails", "promise_words", "promises"}


def test_what_verify_asks_of_a_policy_loads_no_pilot() -> None:
    """The package of promises gives its names when they are used."""
    code = "import sys, rrf_design.cli.verify, rrf_design.checker.looks; print(*sys.modules)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in made.stdout.split() if name.startswith("rrf_design.")}
    assert rooms.isdisjoint({"acquisition", "tables", "repairing", "planning", "models", "risk"})


def test_scenarios_use_public_names_only() -> None:
    assert list(_private_imports("scenarios")) == []


def _private_imports(folder: str) -> Iterator[str]:
    for path in sources(folder):
        for name in imported(path):
            if name.split(".")[0] in ("rrf_design", "solvers") and any(
                part.startswith("_") for part in name.split(".")
            ):
                yield f"{path.relative_to(ROOT)} imports {name}"


def room_of(name: str) -> str:
    """The room of a module of rrf_design: its folder, or `core` for a module of the top level."""
    first = name.split(".")[1] if "." in name else ""
    return first if (ROOT / "rrf_design" / first).is_dir() and first else "core"


FACADE = ("rrf_design/__init__.py", "rrf_design/_lazy.py", "rrf_design/testing.py")
"""What hands out the names of every room, and the suites that try them."""
BOTH_WAYS = {
    frozenset(pair.split())
    for pair in (
        "acquisition tables",
        "certificates tables",
        "core planning",
        "core questions",
        "core responses",
        "core tables",
        "planning tables",
        "repairing tables",
    )
}
"""Pairs of rooms that still import each other; this set may only shrink."""


def test_rooms_do_not_import_each_other_both_ways() -> None:
    """Everybody may raise the errors of the house: the checker that is shipped alone takes them."""
    edges = set()
    for path in sources("rrf_design"):
        here = path.relative_to(ROOT)
        if str(here) in FACADE:
            continue
        own = here.parts[1] if len(here.parts) > 2 else "core"
        for name in imported(path):
            if name.startswith("rrf_design.") and not name.startswith("rrf_design.errors"):
                edges.add((own, room_of(name)))
    found = {frozenset(edge) for edge in edges if edge[0] != edge[1] and edge[::-1] in edges}
    assert found <= BOTH_WAYS, sorted(" ".join(sorted(pair)) for pair in found - BOTH_WAYS)


def test_private_modules_are_imported_within_their_package_only() -> None:
    """Beside them only the facade may, which hands out their names."""
    found = []
    for path in (path for folder in ("rrf_design", "solvers", "scenarios") for path in sources(folder)):
        here = path.relative_to(ROOT)
        for name in imported(path):
            package, mark, rest = name.partition("._")
            module = ROOT.joinpath(*package.split("."), f"_{rest.partition('.')[0]}.py")
            if mark and module.exists() and str(here) not in FACADE and package not in map(dotted, here.parents):
                found.append(f"{here} imports {name}")
    assert found == []


def dotted(folder: Path) -> str:
    return ".".join(folder.parts)


LONGEST = 600


def test_a_thought_fits_into_one_file() -> None:
    for folder in ("rrf_design", "solvers", "scenarios"):
        for path in sources(folder):
            name, lines = str(path.relative_to(ROOT)), len(path.read_text(encoding="utf-8").splitlines())
            assert lines <= LONGEST, f"{name} has {lines} lines"


ONE_FILE_EACH = {"kernels", "models", "cli", "transforms", "reporting", "studio", "sources", "imports"}
"""Rooms whose order is one file each: kernels, adapters, verbs, pages."""
MOST_WITH_ONE_IMPORTER = 30
"""May only become less; the aim is 25."""


def test_a_module_with_one_importer_belongs_to_it() -> None:
    paths = [*sources("rrf_design"), *sources("solvers")]
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    importers: dict[str, set[Path]] = {name: set() for name in modules}
    for path in paths:
        for name in imported(path):
            if name in modules and modules[name] != path and path.name != "__init__.py":
                importers[name].add(path)
    alone = [
        name
        for name, path in modules.items()
        if len(importers[name]) == 1
        and path.name != "__init__.py"
        and not ONE_FILE_EACH.intersection(path.relative_to(ROOT).parts)
    ]
    assert len(alone) <= MOST_WITH_ONE_IMPORTER, "\n".join(alone)


@pytest.mark.parametrize("statement", ["import rrf_design", "from rrf_design.cli.app import app"])
def test_nothing_heavy_is_imported_before_it_is_used(statement: str) -> None:
    code = f"import sys; {statement}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    light = {"typer", "rich"} if "cli" in statement else set()
    assert (HEAVY - light) & set(made.stdout.split()) == set()


@pytest.mark.parametrize(
    "verb",
    [
        "repair invoices/rrf.toml --responses invoices/answers.jsonl -o repaired.csv",
        "deliver invoices/rrf.toml --responses invoices/answers.jsonl --risk 5% -o delivered.csv",
        "margin problem.toml",
        "plan problem.toml",
        "explain problem.toml",
        "certify problem.toml --all -o certificate.json",
        "verify certificate.json",
    ],
)
def test_a_first_answer_about_something_small_needs_no_compiler(started: Path, verb: str) -> None:
    """What numba would take seconds to compile runs as it stands."""
    assert "numba" not in called(verb, started)


def test_a_margin_of_something_small_needs_numpy_and_sparse_matrices_only(started: Path) -> None:
    found = called("margin problem.toml", started)
    assert found.isdisjoint({"numba", "flint", "joblib", "ortools", "scipy.linalg", "scipy.optimize", "scipy.special"})


def called(verb: str, folder: Path) -> set[str]:
    """Runs a verb in a process of its own; every module that was imported by its end."""
    code = (
        f"import sys; from rrf_design.cli import main\ntry: main({verb.split()})\nfinally: print(); print(*sys.modules)"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert made.returncode in (0, 1), made.stderr  # 1: done, and the answer is no
    return set(made.stdout.splitlines()[-1].split())


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `init` writes for two situations, and a certificate."""
    folder = tmp_path_factory.mktemp("started")
    called("init documents -o invoices", folder)
    called("init paraphrase -o problem.toml", folder)
    called("certify problem.toml --all -o certificate.json", folder)
    return folder


def test_every_public_name_is_there() -> None:
    for name in rrf_design.__all__:
        assert getattr(rrf_design, name) is not None
