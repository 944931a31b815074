"""Hidden tests never reach a prompt, an anchor or a choice."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

import scenarios.real
from scenarios.real import answers, choices, designs, fields, hidden, marks, programs

sys.path.insert(0, str(Path(__file__).parent))
import fake


@pytest.fixture
def item() -> programs.AskedProgram:
    return programs.items(1)[0]


def test_only_the_evaluation_imports_hidden_tests() -> None:
    folder = Path(scenarios.real.__file__).parent
    readers = set()
    for path in [*folder.glob("*.py"), *folder.parent.glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            if "scenarios.real.hidden" in [module, *names] or (module == "scenarios.real" and "hidden" in names):
                readers.add(path.name)
    assert readers == {"marks.py", "catalogue.py"}  # the catalogue is written when everything is evaluated
    early = [folder / name for name in ("fields.py", "choices.py", "answers.py", "designs.py", "programs.py")]
    assert not any(re.search(r"import.*\bcatalogue\b", path.read_text()) for path in early)


def test_everything_before_the_marks_works_without_hidden_tests(
    item: programs.AskedProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("hidden tests were read before the choices were made")

    monkeypatch.setattr(hidden, "hidden_tests", forbidden)
    monkeypatch.setattr(hidden, "hidden_truth", forbidden)
    log = fake.write_log(tmp_path / "log.gz", [item])
    found = fields.read(item, log)
    right = fields.truth(item)
    for name in choices.BASELINES:
        choices.baseline(name, found, right, code=True)
    for design in designs.DESIGNS:
        choices.natural_repair(design, found, right, k=1, code=True)
    with pytest.raises(AssertionError, match="hidden tests were read"):
        marks.mark_candidates(item, found, object())  # type: ignore[arg-type]


def test_prompts_and_anchors_do_not_change_with_the_hidden_tests(
    item: programs.AskedProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = fake.write_log(tmp_path / "log.gz", [item])
    before = [request.document() for _, _, request in fields.requests(item, log, seed=0)], fields.truth(item)
    monkeypatch.setattr(hidden, "hidden_tests", lambda item: ([99, 98],) * 16)
    after = [request.document() for _, _, request in fields.requests(item, log, seed=0)], fields.truth(item)
    assert before == after


def test_no_test_stands_in_any_prompt() -> None:
    for item in programs.items():
        text = fake.request_texts([*answers.node_requests(item), *answers.sample_requests(item)])
        for arguments in hidden.hidden_tests(item):
            if len(str(arguments)) > 6:
                assert str(arguments)[1:-1] not in text
