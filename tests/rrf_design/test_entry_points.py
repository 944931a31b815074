"""Parts of anybody's: a small distribution, installed as far as Python can tell, offers a model, a
parser and a planner.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

_MODULE = """
from rrf_design.models.scripted import ScriptedModel
from rrf_design.planning._greedy import Greedy
from rrf_design.responses._numeric import IntegerParser

def model(answer="7", *, slots=1):
    return ScriptedModel(lambda request: answer, name=f"acme {answer}", slots=slots)

def parser():
    return IntegerParser("last")

def planner():
    return Greedy("acme")

def no_model():
    return 7
"""
_OFFERS = """[rrf_design.models]
acme = acme_parts:model
acme-broken = acme_nowhere:model
acme-wrong = acme_parts:no_model
openai = acme_parts:model

[rrf_design.parsers]
acme = acme_parts:parser

[rrf_design.planners]
acme = acme_parts:planner
acme-broken = acme_nowhere:planner
"""
_USE = """
import json
import rrf_design as rrf
from rrf_design import models
from rrf_design.errors import RRFError
from rrf_design.planning.registry import planner
from rrf_design.responses import parsers

def refusal(call):
    try:
        return str(call())
    except RRFError as error:
        return str(error)

problem = rrf.Problem(
    nodes=[{"id": "a", "prompt": "?", "parser": "acme"}],
    anchors=[{"id": "x", "node": "a", "value": 8.0, "cost": 1.0}],
)
print(json.dumps({
    "names": models.names(),
    "answer": models.get("acme:8", slots=2).ask(models.Request("?")).text,
    "plain": models.get("acme").name,
    "parsed": list(parsers.get("acme").parse("it is 8").value),
    "plan": rrf.plan(problem, budget=1.0, method="acme").method,
    "run": rrf.acquire(problem, "acme:8", budget=1.0, method="acme", store="runs.sqlite").verdict.value,
    "refused": [refusal(lambda: models.get("acme-broken")), refusal(lambda: models.get("acme-wrong")),
                refusal(lambda: models.get("acme:8", slot=2)), refusal(lambda: planner("acme-broken")),
                refusal(lambda: models.get("acm"))],
}))
"""


def test_parts_of_another_package_are_found(tmp_path: Path) -> None:
    (tmp_path / "acme_parts.py").write_text(_MODULE)
    info = tmp_path / "acme_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(_OFFERS)
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", _USE],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{tmp_path}"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "acme" in found["names"]
    assert (found["answer"], found["plain"], found["parsed"]) == ("8", "acme 7", [8.0])
    assert (found["plan"], found["run"]) == ("acme", "consistent")
    broken, wrong, option, planner, near = found["refused"]
    assert "model 'acme-broken': its package can't be loaded (No module named 'acme_nowhere')" in broken
    assert "gives a int, not a Model" in wrong
    assert "unknown option 'slot'; did you mean 'slots'?" in option
    assert "the package of 'acme-broken' can't be loaded" in planner
    assert "did you mean 'acme'?" in near
