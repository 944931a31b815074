"""`rrf-design repair`: of one field, of many, and of a table."""

from __future__ import annotations

import json
import shutil
from importlib import resources

import pytest

PROBLEM = """
[problem]
name = "one outlier among four"
k = 1
{settings}
[[nodes]]
id = "original"
[[nodes]]
id = "paraphrase"
parser = "integer-last"
[[nodes]]
id = "tripled"
[[nodes]]
id = "shifted"
[[relations]]
id = "r1"
tail = "original"
head = "paraphrase"
[[relations]]
id = "r2"
tail = "original"
head = "tripled"
transport = {{ scale = 3.0 }}
[[relations]]
id = "r3"
tail = "original"
head = "shifted"
offset = 5.0
cost = 1.0
"""


@pytest.fixture
def files(tmp_path):
    problem = tmp_path / "problem.toml"
    problem.write_text(PROBLEM.format(settings=""), encoding="utf-8")

    def responses(content, name="responses.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return problem, responses


GOOD = {"original": 42, "paraphrase": "So it is 42.", "tripled": 141, "shifted": 47}


def test_json(run, files):
    problem, responses = files
    ran = run("repair", problem, "--responses", responses(GOOD), "--all", "--json")
    assert ran.code == 0
    document = ran.json
    assert document["repaired"] == {"original": [42.0], "paraphrase": [42.0], "tripled": [126.0], "shifted": [47.0]}
    assert document["support"] == ["tripled"]
    assert document["method"] == "exact"
    assert document["gamma"] > 0
    assert document["error_bound"] == 0.0
    assert document["residual"] == pytest.approx(0.0, abs=1e-9)
    assert document["format"] == "rrf-repair"


def test_readable_answer(run, files):
    problem, responses = files
    ran = run("repair", problem, "-r", responses(GOOD), "--all")
    assert ran.code == 0
    for part in (
        "1 of 4 answers is wrong: tripled",
        "141",
        "+15",
        "126",
        "Verdict: consistent, assuming that at most 1 of 4 answers is wrong",
        "γ_1 =",
    ):
        assert part in ran.out


def test_no_guarantee_is_exit_code_one(run, files):
    """Without the relation on sale, `shifted` is not seen by anything."""
    problem, responses = files
    ran = run("repair", problem, "-r", responses(GOOD))
    assert ran.code == 1
    assert "margin is zero" in ran.out
    assert "shifted" in ran.out
    unexplained = responses({"original": 42, "paraphrase": 41, "tripled": 120, "shifted": 47})
    assert run("repair", problem, "-r", unexplained, "--all", "--json").json["certainty"] == "unexplained"
    assert run("repair", problem, "-r", unexplained, "--all").code == 1
    assert run("repair", problem, "-r", responses(GOOD), "--all", "--method", "min-sum").code == 1


def test_invalid_responses_are_told(run, files):
    problem, responses = files
    csv = responses("node,value,status\noriginal,42,\nparaphrase,42,\ntripled,,timeout\nshifted,50,\n", "r.csv")
    ran = run("repair", problem, "-r", csv, "--select", "r3")
    assert ran.code == 0
    assert "timeout" in ran.out
    assert "126" in ran.out


def test_truth_names_the_failure(run, files):
    problem, responses = files
    truth = responses({"original": 40, "paraphrase": 40, "tripled": 120, "shifted": 45}, "truth.json")
    shared = responses({"original": 42, "paraphrase": 42, "tripled": 126, "shifted": 47})
    ran = run("repair", problem, "-r", shared, "--all", "--truth", truth)
    assert "shared error" in ran.out
    assert ran.code == 0


def test_many_fields(run, files, tmp_path):
    problem, responses = files
    lines = [{"field": f"f{i}", "responses": {**GOOD, "tripled": 126 + i}} for i in range(3)]
    lines.append({"field": "bad", "responses": {**GOOD, "paraphrase": 1}})
    batch = responses("\n".join(json.dumps(line) for line in lines), "r.jsonl")
    ran = run("repair", problem, "-r", batch, "--all", "--json")
    assert ran.code == 1
    assert [item["field"] for item in ran.json["items"]] == ["f0", "f1", "f2", "bad"]
    assert ran.json["verdict"] == "contradicted"
    assert ran.json["verdicts"] == {"checked": 0, "consistent": 3, "ambiguous": 0, "incomplete": 0, "contradicted": 1}
    assert set(ran.json["items"][3]["repaired"].values()) == {None}
    text = run("repair", problem, "-r", batch, "--all")
    assert "4 fields of 1 design" in text.out
    assert "bad" in text.out


def test_document_is_written(run, files, tmp_path):
    problem, responses = files
    out = tmp_path / "repair.json"
    ran = run("repair", problem, "-r", responses(GOOD), "--all", "-o", out, "--json")
    assert json.loads(out.read_text(encoding="utf-8")) == ran.json


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ({"orignal": 1}, [], "did you mean 'original'"),
        (GOOD, ["--method", "exat"], "unknown method 'exat'"),
        (GOOD, ["--all", "--select", "r3"], "not both"),
        (GOOD, ["--k", "0"], "k must be"),
        (GOOD, ["--epsilon", "-1"], "epsilon must be"),
        (GOOD, ["--select", "x"], "nothing here is called 'x'"),
    ],
)
def test_faults_are_one_line_and_exit_code_two(run, files, content, options, message):
    problem, responses = files
    ran = run("repair", problem, "-r", responses(content), *options)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""


def test_ctrl_c_in_the_search_tells_the_best_explanation_and_writes_nothing(run, files, tmp_path, monkeypatch):
    from solvers.decoding import SupportDecoder

    def stopped(self, syndrome, *, progress, **options):
        progress(0.25, (2,), 0.0, True)
        raise KeyboardInterrupt

    monkeypatch.setattr(SupportDecoder, "decode", stopped)
    problem, responses = files
    target = tmp_path / "repair.json"
    ran = run("repair", problem, "-r", responses(GOOD), "--all", "--json", "-o", target)
    assert ran.code == 130
    assert ran.out == ""
    assert "best so far, not proven: tripled; it explains the data" in ran.err
    assert not target.exists()


def test_ctrl_c_in_the_margin_tells_what_was_found_and_that_its_margin_is_missing(run, files, monkeypatch):
    import solvers

    def stopped(*_, progress, **__):
        progress(0.5, (0.0, 1.5), "")
        raise KeyboardInterrupt

    monkeypatch.setattr(solvers, "margin", stopped)
    problem, responses = files
    ran = run("repair", problem, "-r", responses(GOOD), "--all")
    assert ran.code == 130
    assert "found wrong: tripled; without its margin yet, γ is between 0 and 1.5" in ran.err
    assert "unique" not in ran.out + ran.err


def test_ctrl_c_in_a_batch_tells_what_is_finished(run, files, monkeypatch):
    import rrf_design.repairing._repairs as batch

    class Stopped(batch._Fields):
        def __call__(self, jobs):
            if len(jobs) == 1:
                raise KeyboardInterrupt
            return super().__call__(jobs)

    monkeypatch.setattr(batch, "CHUNK", 2)
    monkeypatch.setattr(batch, "_Fields", Stopped)
    problem, responses = files
    lines = "\n".join(json.dumps({"field": name, "responses": GOOD}) for name in "abc")
    ran = run("repair", problem, "-r", responses(lines, "many.jsonl"), "--all", "--json")
    assert ran.code == 130
    assert ran.out == ""
    assert "2 of 3 fields are finished: 2 consistent" in ran.err


def test_a_refusal_in_prose_is_a_refusal_and_only_answers_are_counted(run, files):
    problem, responses = files
    given = {**GOOD, "tripled": 126, "paraphrase": "I'm sorry, but I can't help with that."}
    ran = run("repair", problem, "-r", responses(given), "--all")
    assert ran.code == 0
    assert "no answer of 3 is wrong" in ran.out
    assert "refusal" in ran.out


def test_bounds_are_told_in_the_units_of_the_answers(run, files, tmp_path):
    """A metric of 1e-6 measures a node in thousands: a bound of 0.2 there is a bound of 200 on its
    answer.
    """
    path = tmp_path / "units.toml"
    path.write_text(
        """
        [problem]
        epsilon = 0.1
        [[nodes]]
        id = "km"
        [[nodes]]
        id = "m"
        metric = 1e-6
        [[anchors]]
        id = "a"
        node = "km"
        value = 1.0
        [[anchors]]
        id = "b"
        node = "m"
        value = 1000.0
        sigma = 1000.0
        """,
        encoding="utf-8",
    )
    ran = run("repair", path, "-r", files[1]({"km": 1.0, "m": 5000.0}))
    assert ran.code == 0
    assert "in their own units: km 0.2, m 200" in ran.out
    assert "±200" in ran.out
    document = run("repair", path, "-r", files[1]({"km": 1.0, "m": 5000.0}), "--json").json
    assert document["error_bound"] == pytest.approx(0.2)
    assert document["bounds"] == {"km": pytest.approx(0.2), "m": pytest.approx(200.0)}


def test_who_is_wrong_is_put_no_more_firmly_than_it_is_known(run, files, tmp_path):
    """With large noise two answers may be the wrong one; the values are within their bound all the
    same.
    """
    path = tmp_path / "noisy.toml"
    nodes = "".join(f'[[nodes]]\nid = "n{i}"\n' for i in range(3))
    pairs = ((0, 1), (0, 2), (1, 2))
    relations = "".join(f'[[relations]]\nid = "r{a}{b}"\ntail = "n{a}"\nhead = "n{b}"\n' for a, b in pairs)
    path.write_text(f"[problem]\nk = 1\nepsilon = 1.0\n{nodes}{relations}", encoding="utf-8")
    ran = run("repair", path, "-r", files[1]({"n0": 0.0, "n1": 0.7, "n2": 1.4}))
    assert ran.code == 1  # nothing says how large an error is acceptable, and two explanations remain
    assert "is perhaps wrong" in ran.out
    assert "who is wrong is open" in ran.out
    path.write_text(
        path.read_text(encoding="utf-8").replace("epsilon = 1.0", "epsilon = 1.0\ndelta = 3.0"), encoding="utf-8"
    )
    assert run("repair", path, "-r", files[1]({"n0": 0.0, "n1": 0.7, "n2": 1.4})).code == 0


def test_a_batch_names_what_was_wrong_in_its_fields(run, files):
    problem, responses = files
    content = "field,original,paraphrase,tripled,shifted\nfirst,42,42,141,47\nsecond,42,42,126,47\n"
    ran = run("repair", problem, "-r", responses(content, "many.csv"), "--all")
    assert ran.code == 0
    line = next(line for line in ran.out.splitlines() if line.startswith("first"))
    assert line.split() == ["first", "tripled", "+15", "126"]


def test_nothing_to_repair_says_why(run, files):
    problem, responses = files
    for content, part in (
        ("", "holds no responses"),
        ({}, "holds no responses"),
        ({"original": None}, "original: missing"),
    ):
        ran = run("repair", problem, "-r", responses(content))
        assert ran.code == 2
        assert part in ran.err
        assert ran.err.count("\n") == 1


def test_an_option_of_another_method_is_refused_and_not_ignored(run, files):
    problem, responses = files
    ran = run("repair", problem, "-r", responses(GOOD), "--all", "--penalty", "0.1")
    assert ran.code == 2
    assert "method exact has no option 'penalty'; it belongs to convex" in ran.err
    assert run("repair", problem, "-r", responses(GOOD), "--all", "--penalty", "0.1", "--method", "convex").code in (
        0,
        1,
    )


def test_junit_has_a_case_for_every_field(run, files, tmp_path):
    from xml.etree import ElementTree

    problem, responses = files
    out = tmp_path / "junit.xml"
    assert run("repair", problem, "--responses", responses(GOOD), "--all", "--junit", out).code == 0
    assert ElementTree.parse(out).getroot().get("failures") == "0"
    lines = [{"field": name, "responses": GOOD} for name in ("a", "b")]
    lines.append({"field": "c", "responses": {**GOOD, "original": 1, "shifted": 99}})
    many = responses("\n".join(json.dumps(line) for line in lines), "many.jsonl")
    assert run("repair", problem, "--responses", many, "--all", "--junit", out).code == 1
    cases = ElementTree.parse(out).getroot().findall(".//testcase")
    assert [case.get("name") for case in cases] == ["a", "b", "c"]
    failure = cases[2].find("failure")
    assert cases[0].find("failure") is None
    assert failure is not None
    assert (failure.get("message") or "").partition(":")[0] in ("ambiguous", "incomplete", "contradicted")


def test_a_wrong_answer_that_is_not_delivered_is_told_without_a_bound(run, tmp_path):
    problem = tmp_path / "delivered.toml"
    text = '[problem]\nepsilon = 0.01\ndeliver = ["b"]\n[[nodes]]\nid = "a"\n[[nodes]]\nid = "b"\n'
    text += '[[relations]]\nid = "r"\ntail = "a"\nhead = "b"\n'
    for node in "ab":
        text += f'[[anchors]]\nid = "check {node}"\nnode = "{node}"\nvalue = [1.0]\n'
    problem.write_text(text, encoding="utf-8")
    answers = tmp_path / "answers.json"
    answers.write_text('{"a": 5, "b": 1}', encoding="utf-8")
    ran = run("repair", problem, "--responses", answers)
    assert ran.code == 0
    assert "not delivered" in ran.out


@pytest.fixture
def sums(tmp_path, monkeypatch):
    for name in ("rrf.toml", "table.csv", "answers.jsonl"):
        shutil.copy(str(resources.files("rrf_design") / "templates" / "sums" / name), tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_table_in_a_table_out(run, sums):
    ran = run("repair", "--responses", "answers.jsonl", "-o", "d.csv", "-o", "d.json", "--review", "r.csv", "--json")
    assert ran.code == 0
    document = json.loads(ran.out)
    assert document["verdicts"] == {"checked": 0, "consistent": 6, "ambiguous": 0, "incomplete": 0, "contradicted": 0}
    assert json.loads((sums / "d.json").read_text())["items"] == document["items"]
    assert "182,There are 192 of them.,consistent" in (sums / "d.csv").read_text()
    assert (sums / "r.csv").read_text().splitlines() == ["rank,id,check,question,raw,verdict,reason,cost,value"]


def test_people_can_read_it(run, sums):
    ran = run("repair", "--responses", "answers.jsonl")
    assert "6 rows: 6 consistent" in ran.out
    assert "chairs" in ran.out


def test_a_share_can_be_required(run, sums):
    kept = [line for line in (sums / "answers.jsonl").read_text().splitlines() if '"apples"' not in line]
    (sums / "answers.jsonl").write_text("\n".join(kept) + "\n")
    assert run("repair", "--responses", "answers.jsonl", "-q").code == 0
    assert run("repair", "--responses", "answers.jsonl", "-q", "--require-share", "0.8").code == 0
    assert run("repair", "--responses", "answers.jsonl", "-q", "--require-share", "1").code == 1


def test_one_item(run, sums):
    document = json.loads(run("repair", "--responses", "answers.jsonl", "--item", "chairs", "--json").out)
    assert [item["id"] for item in document["items"]] == ["chairs"]
    ran = run("repair", "--responses", "answers.jsonl", "--item", "chair")
    assert ran.code == 2
    assert "chairs" in ran.err


def test_options_of_tables_are_refused_for_a_problem(run, tmp_path):
    (tmp_path / "p.toml").write_text('[problem]\nname = "p"\n[[nodes]]\nid = "a"\n')
    (tmp_path / "r.json").write_text('{"a": 1}')
    ran = run("repair", tmp_path / "p.toml", "--responses", tmp_path / "r.json", "--review", tmp_path / "x.csv")
    assert ran.code == 2
    assert "--review goes with a table" in ran.err


def test_verbs_of_one_problem_take_an_item(run, sums):
    for verb in ("margin", "explain", "certify", "plan"):
        more = ["-o", "c.json"] if verb == "certify" else []
        ran = run(verb, "--item", "chairs", "--json", *more)
        assert ran.code in (0, 1), ran.err
        assert json.loads(ran.out)
        whole = run(verb, *more)
        assert whole.code in (0, 1), whole.err  # the table itself: once per structure


def test_plan_over_a_table(run, sums):
    document = json.loads(run("plan", "--budget", "0.3", "--json").out)
    assert set(document["items"]) == {"pencils", "apples", "stamps", "bottles", "chairs", "books"}
    assert document["cost"] <= 0.3
    assert run("plan", "--budget", "0.3").code == 0
