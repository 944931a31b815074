"""A first recipe for a table and a question: what is guessed of the columns, and that it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design import InputError
from rrf_design.models.scripted import ScriptedModel
from rrf_design.questions import load_recipe
from rrf_design.questions.draft import _RecipeDraft, draft_recipe

TEXTS = (
    "The kettle broke after two days: please pay back 20.50",
    "Toaster never came; I paid 30.00 for it",
    "All is fine",
)
TICKETS = "no,text,product,refund\n" + "".join(
    f'{number},"{text}",{product},{refund}\n'
    for number, text, product, refund in zip(
        ("007", "008", "009"), TEXTS, ("kettle", "toaster", "lamp"), ("20.50", "30.00", "0.00"), strict=True
    )
)


def drafted(
    folder: Path, content: str | bytes, question: str = "What is the refund?", name: str = "t.csv", **more: Any
) -> _RecipeDraft:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return draft_recipe(folder / name, question, folder=folder / "new", **more)


def written(draft: _RecipeDraft, folder: Path) -> Any:
    """The recipe as it is read from its folder, which must be what was drafted."""
    (folder / "new").mkdir()
    for name, text in draft.files.items():
        (folder / "new" / name).write_text(text, encoding="utf-8")
    recipe = load_recipe(folder / "new" / "rrf.toml")
    assert recipe.digest == draft.items.recipe.digest or "rewordings.toml" in draft.files
    assert list(rrf.dataset(folder / "new" / "rrf.toml")) == list(draft.items)
    return recipe


def test_tickets(tmp_path: Path) -> None:
    draft = drafted(tmp_path, TICKETS, entry={"use": "openai:gpt-4.1-mini"})
    recipe = written(draft, tmp_path)
    assert (recipe.data.table, recipe.data.id, recipe.data.gold_column) == ("../t.csv", "no", "refund")
    assert recipe.models == {"model": {"use": "openai:gpt-4.1-mini"}}
    problem = draft.items["007"]
    assert (problem.k, problem.delta) == (1, 0.005)
    assert [node.id for node in problem.nodes] == ["answer", "reworded", "reasoned", "doubled"]
    assert all(node.price is not None and 0 < node.price < 0.001 for node in problem.nodes)
    prompts = draft.items.item("007").prompts
    for name, prompt in prompts.items():
        assert "What is the refund?" in prompt, name
        assert f"text: {TEXTS[0]}\nproduct: kettle" in prompt, name
        assert "refund:" not in prompt, name
    assert len(set(prompts.values())) == 4
    (anchor,) = problem.anchors
    assert anchor.cost == 0.5
    assert problem.margin(select="all").value > 0
    assert any("column 'refund' is the truth" in told for told in draft.assumed)


@pytest.mark.parametrize(
    ("question", "options", "texts", "value"),
    [
        ("What is the refund?", {}, ("20.50", "It is 20.50", "It broke.\nAnswer: 20.50", "41"), 20.5),
        ("How many days?", {"gold": "none"}, ("2", "2", "Broke after two.\nAnswer: 2", "4"), 2),
        ("Is it broken?", {"gold": "none"}, ("Yes", "yes", "It broke.\nAnswer: yes"), "yes"),
        ("Which one?", {"choices": ["kettle", "{{ text }}", "lamp"]}, ("kettle", "Kettle.", "So.\nAnswer: kettle"), "kettle"),
        ("Who made it?", {"gold": "none"}, ("Acme", "acme.", 'So.\n{"answer": "Acme"}'), "acme"),
    ],
)  # fmt: skip
def test_answers_of_every_kind_are_read(tmp_path: Path, question: str, options: Any, texts: Any, value: Any) -> None:
    """With one of them wrong and with none."""
    items = drafted(tmp_path, TICKETS, question, **options).items
    names = [node.id for node in items["007"].nodes]
    assert len(names) == len(texts)
    right = [{"id": "007", "node": name, "text": text} for name, text in zip(names, texts, strict=True)]
    wrong = [{**row, "id": "008"} for row in right]
    wrong[1]["text"] = {"yes": "no", "kettle": "lamp"}.get(value, "77")
    delivery = rrf.repair(items, [*right, *wrong])
    for name in ("007", "008"):
        assert delivery[name].answer == value
    assert delivery["008"].wrong == ("reworded",)


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        (TICKETS.replace(",", "\t").replace(";", ","), "t.tsv", {}),
        ("\ufeff" + TICKETS.replace(";", ",").replace(",", ";").replace("; I", " I"), "t.csv", {"separator": ";"}),
        (TICKETS.replace("fine", "fein: schön").encode("latin-1"), "t.csv", {"encoding": "cp1252"}),
        (TICKETS.replace("\n", "\r\n"), "t.csv", {}),
    ],
)  # fmt: skip
def test_tables_as_people_have_them(tmp_path: Path, content: str | bytes, name: str, told: dict[str, str]) -> None:
    draft = drafted(tmp_path, content, name=name)
    recipe = written(draft, tmp_path)
    assert {key: getattr(recipe.data, key) for key in told} == told
    assert list(draft.items) == ["007", "008", "009"]
    assert recipe.data.gold_column == "refund"


def rows() -> list[dict[str, Any]]:
    texts = ("a first text of some length, for all", "a second text of some length, for all", "a third one of the same")
    return [{"key": f"r{n}", "text": text, "options": ["red", "{{ blue }}"]} for n, text in enumerate(texts)]


def test_without_a_name_for_rows_they_are_counted(tmp_path: Path) -> None:
    marks = drafted(tmp_path, "ticket,text\nT-1,a\nT-2,b\n", "Why?")
    assert written(marks, tmp_path).data.id == "ticket"
    assert drafted(tmp_path, "text,more\na1,x\na2,y\na2,z\n", "Why?").items.recipe.data.id is None
    assert drafted(tmp_path, "boxes,each\n3,4\n5,6\n", "How many?").items.recipe.data.id is None


def test_json_lines_with_choices_and_keys_that_some_rows_lack(tmp_path: Path) -> None:
    listed = rows()
    listed[1]["remark"] = "only here"
    draft = drafted(tmp_path, "\n".join(map(json.dumps, listed)), "Which colour?", name="t.jsonl")
    recipe = written(draft, tmp_path)
    assert recipe.data.id == "key"
    assert draft.items["r0"].node_by_id["answer"].dim == 2
    assert (
        'Answer with one of these and nothing else: ["red", "{{ blue }}"]' in draft.items.item("r0").prompts["answer"]
    )
    assert not any("only here" in prompt for prompt in draft.items.item("r1").prompts.values())
    assert any("some rows do not have it: 'remark'" in told for told in draft.assumed)


def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    parquet.write_table(
        pyarrow.Table.from_pylist([{**row, "id": n} for n, row in enumerate(rows())]), tmp_path / "t.parquet"
    )
    draft = draft_recipe(tmp_path / "t.parquet", "Which colour?", folder=tmp_path / "new")
    assert written(draft, tmp_path).data.id == "id"
    assert list(draft.items) == ["0", "1", "2"]


ODD = [
    "Order text",
    'say "hi"',
    "it's",
    "{{ x }}",
    "{% if %}",
    "größe",
    "class",
    "if",
    "row",
    "a\\b",
    "tab\there",
    "verdict",
    "cost",
]


@pytest.mark.parametrize("name", ODD)
def test_columns_of_any_name_are_shown(tmp_path: Path, name: str) -> None:
    cell = "{{ no template }} {x}"
    draft = drafted(
        tmp_path, "\n".join(json.dumps({"id": n, name: cell, "more": "m"}) for n in range(2)), name="t.jsonl"
    )
    written(draft, tmp_path)
    for prompt in draft.items.item("1").prompts.values():
        assert f"{' '.join(name.split())}: {cell}\nmore: m" in prompt


@pytest.mark.parametrize(
    "question", ["Is {text} a {{ template }}?", "{% for %} {# what?", 'Say """ "why\\n"', "Ünï\x07code\n\nlines?"]
)
def test_braces_and_quotes_of_a_question_are_characters(tmp_path: Path, question: str) -> None:
    draft = drafted(tmp_path, TICKETS, question)
    written(draft, tmp_path)
    assert all(question in prompt for prompt in draft.items.item("007").prompts.values())


def test_a_question_may_speak_of_columns(tmp_path: Path) -> None:
    draft = drafted(tmp_path, TICKETS, "How much is paid back for the {{ product }} ({{ row['text'] }})?")
    written(draft, tmp_path)
    for prompt in draft.items.item("008").prompts.values():
        assert f"for the toaster ({TEXTS[1]})?" in prompt
        assert "text:" not in prompt


def test_columns_that_delivered_tables_have_too(tmp_path: Path) -> None:
    content = "answer,verdict,text\n5,spam,buy five of these now and all of them tomorrow\n"
    content += "6,ham,six apples are in the basket of the cook\n"
    draft = drafted(tmp_path, content, "How many?")
    recipe = written(draft, tmp_path)
    assert recipe.data.gold_column == "answer"
    assert recipe.data.id is None
    assert "verdict: spam" in draft.items.item("1").prompts["answer"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("text,label\n" + "a,spam\nb,ham\n" * 3, "one of ham, spam"),
        ("text,label\na,1\nb,12\n", "a number; 0.4 off is still right, whole"),
        ("text,label\na,1.5\nb,12.25\n", "a number; 0.005 off"),
        ("text,label\na,one\nb,two\n", "a short text"),
    ],
)
def test_the_truth_says_what_an_answer_is(tmp_path: Path, content: str, kind: str) -> None:
    draft = drafted(tmp_path, content, "What is it?")
    assert any(told.startswith(f"the answer is {kind}") for told in draft.assumed)
    assert "label" not in draft.items.item("1").prompts["answer"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (TICKETS, {"question": " "}, "the question is empty"),
        ("no,text\n", {}, "t.csv: holds no rows"),
        ("", {}, "t.csv: the file is empty"),
        ("id,gold\n1,2\n", {}, "no column to ask about beside 'id', 'gold'"),
        ("id,text\n1,a\n1,b\n", {}, "row 2: the id '1' stands in row 1 already"),
        ("no,text\n1,a\n2\n", {}, "row 2: 1 cells where the header has 2"),
        (TICKETS, {"id": "nr"}, "no column 'nr' for the id (there are: no, text, product, refund)"),
        (TICKETS, {"gold": "refunds"}, "no column 'refunds' for the gold; did you mean 'refund'?"),
        (TICKETS, {"choices": ["a", "A"]}, "choices 'a, A': give two or more different words"),
        (TICKETS, {"choices": ["a", "b"], "tolerance": 1.0}, "give one of them"),
        (TICKETS, {"tolerance": 0.0}, "tolerance 0: should be a number above 0"),
        (TICKETS, {"question": "Why {{ prodct }}?"}, "'prodct', which is no column; did you mean 'product'?"),
        (TICKETS, {"question": "Is {{ refund }} right?", "gold": "refund"}, "'refund', the column of the truth"),
    ],
)
def test_wrong_input_is_one_line(tmp_path: Path, content: str, options: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        drafted(tmp_path, content, options.pop("question", "What is the refund?"), **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_a_model_writes_more_wordings_for_review(tmp_path: Path) -> None:
    better = "{{ text }} {{ product }} How much money must go back? Answer with the number only."
    draft = drafted(tmp_path, TICKETS, model=ScriptedModel({"default": better}))
    assert "reviewed = false" in draft.files["rewordings.toml"]
    assert 'rewordings = "rewordings.toml"' in draft.files["rrf.toml"]
    written(draft, tmp_path)
    path = tmp_path / "new" / "rewordings.toml"
    path.write_text(path.read_text().replace("reviewed = false", "reviewed = true"))
    assert "answer-1" in rrf.dataset(tmp_path / "new" / "rrf.toml")["007"].node_by_id


def test_a_model_that_writes_nothing_new_is_no_fault(tmp_path: Path) -> None:
    draft = drafted(tmp_path, TICKETS, model=ScriptedModel({"default": " "}))
    assert list(draft.files) == ["rrf.toml"]
    assert "the model wrote no other wording" in draft.assumed
    written(draft, tmp_path)


ODD = {
    "choices": ("id,review,sentiment\n" + "".join(f"{i},It works number {i},{('good', 'bad')[i % 2]}\n" for i in range(12)), "What is the sentiment?"),
    "days": ("case,letter,due date\n" + "".join(f"{i},Please pay by {i} March 2024.,2024-03-{i:02}\n" for i in range(1, 9)), "What is the due date?"),
    "commas": ("Nummer;Text;Betrag\n" + "".join(f"{i};Ger\u00e4t Nr. {i} kostet {i},50 \u20ac;{i},50\n" for i in range(1, 9)), "Was ist der Betrag?"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("choices", "the answer is one of bad, good (as in the column 'sentiment'"),
        ("days", "the answer is a date (as in the column 'due date'"),
        ("commas", "the answer is a number; 0.005 off is still right (as in the column 'Betrag'"),
    ],
)
def test_the_column_that_is_asked_for_is_the_truth_and_says_what_the_answer_is(
    tmp_path: Path, name: str, told: str
) -> None:
    text, question = ODD[name]
    (tmp_path / "t.csv").write_bytes(text.encode("cp1252"))
    draft = draft_recipe(tmp_path / "t.csv", question, folder=tmp_path)
    assert any(words.startswith(told) for words in draft.assumed)
    assert draft.items.recipe.data.gold_column is not None
    assert all(
        draft.items.recipe.data.gold_column not in prompt for prompt in next(iter(draft.items.items_in_order())).shown
    )
