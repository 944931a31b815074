"""A first recipe for a table and one question: what a person would write who looks at the columns
for a minute.

Each choice is a guess, and each guess is told, so that it can be corrected in the file: which
column names the row, which holds the truth (no question shows it), and what kind of answer is
wanted. The question is asked in three wordings of ours, and once more for the double of the answer
where the answer is a number; a person is the last resort.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.errors import InputError
from rrf_design.files import parse_text, suggestion, toml_entry
from rrf_design.questions.datasets import Dataset
from rrf_design.questions.recipe import AskEntry, recipe_from_document
from rrf_design.questions.tables import DataTable, RowFaults, open_table
from rrf_design.questions.templates import strict_number, template
from rrf_design.responses import parsers

if TYPE_CHECKING:
    from rrf_design.models import Model
    from rrf_design.models.prices import Price

NONE = "none"
"""For `id` and `gold`: there is no such column."""
MOST_CLASSES = 10
"""A column of the truth with more different texts than this is no list of choices."""
REASONED_TOKENS = 300
LOOK = 0.5
"""What a look of a person is taken to cost, in the currency of the calls."""
_IDS = {"id", "no", "nr", "number", "key", "uid", "uuid"}
_TRUTHS = {"gold", "truth", "ground truth", "label", "target", "expected", "answer", "correct", "correct answer"}
_TRUTHS |= {"solution", "reference", "true value", "actual"}
_YES_NO = re.compile(
    r"(?!was\s+(?:ist|sind|war|wird|kostet|steht|ergibt)\b)(is|are|was|were|do|does|did|has|have|had|can|could|should|would|will|may|must)\b(?!.*\bor\b)",
    re.I | re.S,
)
_DAY = re.compile(r"\b(date|what day|which day|datum)\b", re.I)
_WHOLE = re.compile(r"\b(how many|number|count|age|year|quantity)\b", re.I)
_AMOUNT = re.compile(
    r"\b(how much|amount|total|sum|price|cost|fee|refund|tax|net|gross|balance|percentage|percent|rate|weight|height"
    r"|length|distance|duration|score|average|mean|salary|revenue|profit|discount|payment|charge)s?\b",
    re.I,
)


_COMMA = re.compile(r"[+-]?\d+,\d{1,2}")  # with three digits behind the comma it could be a thousand
_DAYS, LONGEST_DAY = parsers.get("date"), 30
LEAST_TEXT = 14
"""A column is text to find an answer in if it has cells longer than this, and than the answers."""


@dataclass(slots=True)
class _Column:
    """What one pass over the rows says of a column."""

    name: str
    rows: int = 0
    filled: int = 0
    numbers: int = 0
    days: int = 0
    """Cells that are one day, whose month nobody has to guess."""
    decimals: int = 0
    lists: int = 0
    characters: int = 0
    longest: int = 0
    marks: bool = True
    """Every cell is one short word with a digit, and is no number."""
    names_rows: bool = True
    """No cell is empty, all are text or whole numbers, and none stands twice so far."""
    classes: dict[str, None] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)

    @property
    def words(self) -> str:
        """The name in lower case, its words parted by blanks."""
        parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name)
        return " ".join(re.findall(r"[^\W_]+", parted.lower()))

    def note(self, cell: Any) -> None:
        self.rows += 1
        text = "" if cell is None else str(cell).strip()
        self.names_rows &= bool(text) and isinstance(cell, str | int) and not isinstance(cell, bool)
        if self.names_rows:
            self.names_rows = hash(str(cell)) not in self._seen
            self._seen.add(hash(str(cell)))
        else:
            self._seen.clear()
        if not text:
            return
        self.filled += 1
        self.characters += len(text)
        self.longest = max(self.longest, len(text))
        self.marks &= len(text) <= 40 and " " not in text and any(map(str.isdigit, text))
        self.lists += _is_choices(cell)
        if len(self.classes) <= MOST_CLASSES:
            self.classes[text] = None
        written = _written_number(cell, text)
        if written is None:
            self.days += len(text) <= LONGEST_DAY and _DAYS.parse(text).ok
            return
        self.numbers += 1
        self.marks = False
        self.decimals = max(self.decimals, len(written.partition(".")[2]))


@dataclass(frozen=True, slots=True)
class _Answer:
    """What kind of answer is wanted, and how that was guessed."""

    kind: str
    why: str
    tolerance: float | None = None
    choices: tuple[str, ...] | str = ()
    """The words, or one placeholder of a column that lists them."""
    whole: bool = False

    @property
    def form(self) -> str:
        """How the answer is to be written."""
        if self.kind == "number":
            return f"Answer with the {'whole ' * self.whole}number only."
        if self.kind == "day":
            return "Answer with the date as YYYY-MM-DD only."
        if self.kind == "text":
            return "Answer with the answer itself, in as few words as it takes."
        listed = self.choices if isinstance(self.choices, str) else _literally(", ".join(self.choices))
        return f"Answer with one of these and nothing else: {listed}"


@dataclass(frozen=True, slots=True)
class _RecipeDraft:
    """A recipe that runs, and what was assumed in it."""

    files: Mapping[str, str]
    """Texts by name: rrf.toml, and the wordings of a model for review."""
    assumed: tuple[str, ...]
    items: Dataset
    """The table under the recipe."""


def draft_recipe(
    table: str | os.PathLike[str],
    question: str,
    *,
    folder: Path,
    choices: Sequence[str] = (),
    tolerance: float | None = None,
    id: str | None = None,
    gold: str | None = None,
    model: Model | None = None,
    entry: Mapping[str, Any] | None = None,
) -> _RecipeDraft:
    """A recipe that asks one question of every row of a table.

    Parameters
    ----------
    table
        A path: .csv, .tsv, .json, .jsonl or .parquet.
    question
        What is asked of every row. It may speak of columns as templates do, `{{ column }}`;
        otherwise the columns are shown above it.
    folder
        Where the recipe will lie: it names the table from there.
    choices, tolerance
        What the answer is: one of these, or a number that may be off by so much. By default it is
        guessed from the column of the truth and from the question.
    id, gold
        Columns: what names a row, and the truth; `"none"` for neither. Guessed by default.
    model
        Writes two more wordings for review.
    entry
        Its entry for `[models]`: `use`, and options.

    Returns
    -------
    A `RecipeDraft`; nothing is written.

    >>> import pathlib, tempfile
    >>> from rrf_design.questions.draft import draft_recipe
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "t.csv").write_text("no,text\\n1,Return 3 of 5\\n2,Return 1")
    >>> draft = draft_recipe(folder / "t.csv", "How many are returned?", folder=folder)
    >>> list(draft.items["1"].node_by_id)
    ['answer', 'reworded', 'reasoned', 'doubled']
    """
    if not question.strip():
        raise InputError("the question is empty: write what is asked of every row")
    source, data, columns, count = _opened(Path(table))
    named = {column.name: column for column in columns}
    key = _chosen(id, "id", _id_column(columns), named)
    truth = _chosen(gold, "gold", _gold_column(columns, question, key), named)
    lists = next((c for c in columns if c.lists == count and c.name not in (key, truth)), None)
    answer = _answer(question, choices, tolerance, None if truth is None else named[truth], lists, count)
    own = _own_columns(question, named)
    if truth in own:
        raise InputError(f"the question speaks of {truth!r}, the column of the truth; if it is none, say gold none")
    hidden = {truth, key if key is not None and _is_id_name(named[key]) else None}
    hidden |= {lists.name if lists is not None and isinstance(answer.choices, str) else None}
    shown = [c.name for c in columns if c.rows == count and c.filled and c.name not in hidden and not own]
    if not shown and not own:
        left = ", ".join(repr(c.name) for c in columns if c.name in hidden)
        raise InputError(
            f"{source.name}: no column to ask about{f' beside {left}' if left else ''}; all others are empty"
        )
    asked = question.strip() if own else _literally(question.strip(), named)
    above = _block(shown)
    length = sum(named[name].characters for name in shown) / count + len(asked) + 80
    price = _price(entry)
    place = _from_folder(Path(table), folder)
    body = {"data": {"table": place, **data, **({} if key is None else {"id": key})}}
    if truth is not None:
        body["data"]["gold"] = truth
    asks = _priced(_asks(asked, above, answer), price, length)
    written = _wordings(asks[0], model)
    text = _recipe_text(body["data"], entry, answer, asks, _person(asked, above, answer), bool(written), question)
    files = {"rrf.toml": text} | ({"rewordings.toml": written} if written else {})
    document = parse_text(text, ".toml")
    document["answer"].pop("rewordings", None)  # a file that is not there yet, and of which nothing is reviewed
    items = Dataset(recipe_from_document(document, name="rrf.toml", folder=folder), source)
    told = _told(key, truth, own or shown, columns, count, answer, data)
    return _RecipeDraft(files, (*told, *_told_of_money(entry, asks[0].get("cost"), model, written)), items)


def _opened(path: Path) -> tuple[DataTable, dict[str, str], list[_Column], int]:
    """The table, what [data] must say to read it (another separator or encoding is found out), its
    columns, and how many rows it has.
    """
    told: InputError | None = None
    for encoding in ("utf-8", "cp1252", "latin-1"):
        for separator in (None, ";", "\t", "|"):
            faults = RowFaults(str(path))
            try:
                table = open_table(path, separator=separator, encoding=encoding)
                columns, count = _survey(table, faults)
                faults.refuse(count + faults.unread)
            except InputError as error:
                if told is None and not any(cure in str(error) for cure in ("say separator", "not UTF-8")):
                    raise
                told = told or error
                continue
            if not count:
                raise InputError(f"{path}: holds no rows")
            if separator is None or len(columns) > 1:
                data = {} if separator is None else {"separator": separator}
                return table, data | ({} if encoding == "utf-8" else {"encoding": encoding}), columns, count
    raise told or InputError(f"{path}: can't be read")


def _survey(table: DataTable, faults: RowFaults) -> tuple[list[_Column], int]:
    """What one pass says of every column, in order, and the number of rows."""
    found = {name: _Column(name) for name in table.columns or ()}
    count = 0
    for _, cells, _ in table.rows(faults):
        count += 1
        for name, cell in cells.items():
            if name not in found:
                found[name] = _Column(name)
            found[name].note(cell)
    return list(found.values()), count


def _chosen(given: str | None, role: str, guess: str | None, named: Mapping[str, _Column]) -> str | None:
    """The column that was named for a role, else the guess."""
    if given is None:
        return guess
    if given in named:
        return given
    if given == NONE:
        return None
    raise InputError(f"no column {given!r} for the {role}{suggestion(given, named)} (there are: {', '.join(named)})")


def _id_column(columns: Sequence[_Column]) -> str | None:
    """A column that is called like an id and is one; else the first one, where it holds marks like
    T-17 that differ.

    One that is called `id` is taken in any case: if it holds the same twice, that is to be told.
    """
    called = [c.name for c in columns if c.words == "id"] or [
        c.name for c in columns if _is_id_name(c) and c.names_rows
    ]
    first = columns[0]
    return called[0] if called else first.name if first.names_rows and first.marks and len(columns) > 1 else None


def _is_id_name(column: _Column) -> bool:
    return column.words.split(" ")[-1] in _IDS


def _gold_column(columns: Sequence[_Column], question: str, key: str | None) -> str | None:
    """A column that is called like a truth; else the one that the question asks for, where a text
    is there to find it in.
    """
    others = [column for column in columns if column.filled and column.name != key]
    called = [column.name for column in others if column.words in _TRUTHS]
    if called or "{{" in question:
        return called[0] if called else None
    asked = set(re.findall(r"[^\W_]+", question.lower()))
    short = [column for column in others if column.longest <= 30 and not column.lists]
    wanted = [c.name for c in short if (own := c.words.split()) and 2 * len(asked.intersection(own)) >= len(own)]
    longest = max((column.longest for column in others if column.name not in wanted), default=0)
    there = [c.name for c in short if c.name in wanted and longest > max(c.longest, LEAST_TEXT)]
    return there[0] if len(wanted) == len(there) == 1 else None


def _answer(
    question: str,
    choices: Sequence[str],
    tolerance: float | None,
    truth: _Column | None,
    lists: _Column | None,
    count: int,
) -> _Answer:
    """The kind of answer: as given; as a column of choices or of the truth has it; as the question
    sounds.
    """
    if choices and tolerance is not None:
        raise InputError("choices are words and a tolerance is of numbers: give one of them")
    if choices:
        words = tuple(dict.fromkeys(word.strip() for word in choices))
        if len(words) < 2 or not all(words) or len({word.casefold() for word in words}) < len(words):
            raise InputError(f"choices {', '.join(choices)!r}: give two or more different words, parted by commas")
        return _Answer("choice", "as given", choices=words)
    if tolerance is not None:
        if not 0 < tolerance < float("inf"):
            raise InputError(f"tolerance {tolerance:g}: should be a number above 0")
        return _Answer("number", "as given", tolerance=tolerance)
    if lists is not None:
        return _Answer("choice", f"column {lists.name!r} lists the choices", choices=_cell(lists.name))
    if truth is not None:
        like = f"as in the column {truth.name!r}"
        if truth.numbers == truth.filled:
            return _number(like, truth.decimals)
        if truth.days == truth.filled:
            return _Answer("day", like)
        repeated = truth.filled >= 2 * len(truth.classes)
        if 2 <= len(truth.classes) <= MOST_CLASSES and repeated and truth.longest <= 40:
            return _Answer("choice", like, choices=tuple(sorted(truth.classes)))
        return _Answer("text", like)
    if _YES_NO.match(question.strip()):
        return _Answer("choice", "the question asks for yes or no", choices=("yes", "no"))
    if found := _DAY.search(question):
        return _Answer("day", f"the question says {found[0]!r}")
    if found := _WHOLE.search(question) or _AMOUNT.search(question):
        return _number(f"the question says {found[0]!r}", 0 if _WHOLE.search(question) else 2)
    return _Answer("text", "nothing says that it is a number or one of a few words")


def _number(why: str, decimals: int) -> _Answer:
    """A number with so many decimals: less than half of the last one does not count."""
    return _Answer(
        "number", why, tolerance=float(f"{'4' if not decimals else '5'}e-{decimals + 1}"), whole=not decimals
    )


def _written_number(cell: Any, text: str) -> str | None:
    """A number with a decimal point, or with a comma for it; None for what is none."""
    try:
        strict_number(cell)
        return text
    except ValueError:
        return text.replace(",", ".") if _COMMA.fullmatch(text) else None


def _is_choices(cell: Any) -> bool:
    """Whether a cell lists two or more different texts."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return False
    if not isinstance(cell, list | tuple) or not all(isinstance(one, str) and one.strip() for one in cell):
        return False
    return len({one.casefold() for one in cell}) == len(cell) >= 2


def _own_columns(question: str, named: Mapping[str, _Column]) -> list[str]:
    """The columns that the question names as a template does; none where its braces are
    characters.
    """
    if "{{" not in question:
        return []
    try:
        spoken = sorted(template(question).names)
    except InputError:
        return []
    strange = [name for name in spoken if name not in named]
    if not strange:
        return spoken
    if len(strange) < len(spoken) or suggestion(strange[0], named):
        raise InputError(f"the question speaks of {strange[0]!r}, which is no column{suggestion(strange[0], named)}")
    return []


def _literally(text: str, names: Mapping[str, Any] | None = None) -> str:
    """A text in which no brace is taken for a template."""
    spoken = any(re.search(rf"\{{\s*{re.escape(name)}\s*\}}", text) for name in names or ())
    marked = any(mark in text for mark in ("{{", "{%", "{#"))
    return text.replace("{", "{{ '{' }}") if marked or spoken else text


def _cell(name: str) -> str:
    """The placeholder of a column."""
    plain = f"{{{{ {name} }}}}"
    if name.isidentifier() and not name.startswith("_"):
        try:
            if template(plain).names == {name}:
                return plain
        except InputError:  # a word of the template language
            pass
    return f"{{{{ row[{json.dumps(name, ensure_ascii=False)}] }}}}"


def _block(names: Sequence[str]) -> str:
    """The columns as they are shown: one by itself, several each with its name."""
    if len(names) == 1:
        return _cell(names[0])
    everything = dict.fromkeys(names)
    return "\n".join(f"{_literally(' '.join(name.split()), everything)}: {_cell(name)}" for name in names)


def _asks(question: str, above: str, answer: _Answer) -> list[dict[str, Any]]:
    """The question in three wordings, and once more for the double of a number."""
    parser: Any = {"number": "integer" if answer.whole else "decimal", "text": "label", "day": "date"}.get(answer.kind)
    common = {} if parser is None else {"parse": parser}
    what = "Below is one entry of a table." if above else "Read this question twice before you answer it."
    reason = "Give your reasons in one or two sentences. Then write a last line: Answer: and your answer."
    json_form = 'Give your reasons in one or two sentences. Then write a last line of JSON: {"answer": "..."}'
    asks = [
        {"id": "answer", "prompt": _joined(above, question, answer.form), **common},
        {"id": "reworded", "like": "answer", "prompt": _joined(what, question, above, answer.form), **common},
    ]
    reasoned = {"id": "reasoned", "like": "answer", "max_tokens": REASONED_TOKENS, **common}
    if answer.kind in ("text", "day"):
        last = json_form.replace('"..."', '"YYYY-MM-DD"') if answer.kind == "day" else json_form
        reasoned["parse"] = {"name": "json", "field": "answer", "of": parser}
    else:
        last = answer.form.replace("Answer with", "The answer is").replace(" and nothing else", "") + f"\n{reason}"
        last = last.replace(" only.", ".").replace("The answer is the", "The answer is a")
    asks.append({**reasoned, "prompt": _joined(above, "Work this out from the beginning.", question, last)})
    if answer.kind == "number":
        asks.append({"id": "doubled", "like": "answer", "transform": {"scale": 2}})
    return asks


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _person(question: str, above: str, answer: _Answer) -> dict[str, Any]:
    form = f"\n\n{answer.form}" if answer.kind == "choice" else ""
    return {"id": "person", "of": "answer", "by": {"person": _joined(above, question) + form}, "cost": LOOK}


def _wordings(ask: Mapping[str, Any], model: Model | None) -> str:
    """Two more wordings by a model, for review; nothing where none was written."""
    from rrf_design.questions.rewording import dumps_rewordings, write_rewordings

    if model is None:
        return ""
    entries = write_rewordings([AskEntry.model_validate(dict(ask))], model, count=2)
    return dumps_rewordings(entries, "rrf.toml") if entries else ""


def _price(entry: Mapping[str, Any] | None) -> Price | None:
    """What the price list says of a model; None where nobody has a price, or for one on this
    machine.
    """
    from rrf_design.models.prices import listed_price
    from rrf_design.models.registry import adapter

    if entry is None or "base_url" in entry:
        return None
    known = adapter(str(entry["use"]))
    return None if known is None or known.local else listed_price(str(entry["use"]))


def _priced(asks: list[dict[str, Any]], price: Price | None, characters: float) -> list[dict[str, Any]]:
    """The asks with what a call of each costs, to two digits, as `estimate` guesses it."""
    from rrf_design.models.base import Request, Usage
    from rrf_design.models.prices import USED

    if price is None:
        return asks
    for ask in asks:
        limit = ask.get("max_tokens", Request("?").max_tokens)
        used = Usage(input_tokens=round(characters / 4), output_tokens=round(USED * limit), calls=1)
        ask["cost"] = float(f"{price.of(used):.2g}")
    return asks


def _from_folder(table: Path, folder: Path) -> str:
    """The table as the recipe names it."""
    try:
        return Path(os.path.relpath(table.absolute(), folder.absolute())).as_posix()
    except ValueError:  # another drive
        return str(table.absolute())


def _recipe_text(
    data: Mapping[str, Any],
    entry: Mapping[str, Any] | None,
    answer: _Answer,
    asks: Sequence[Mapping[str, Any]],
    person: Mapping[str, Any],
    reworded: bool,
    question: str,
) -> str:
    """The file, with a remark wherever a guess may be corrected."""
    kind: dict[str, Any] = {"of": "answer"}
    if answer.kind == "number":
        kind["tolerance"] = answer.tolerance
    if answer.kind == "choice":
        kind["choices"] = answer.choices if isinstance(answer.choices, str) else list(map(_literally, answer.choices))
    kind["k"] = 1
    if reworded:
        kind["rewordings"] = "rewordings.toml"
    said = "".join(character if character.isprintable() else " " for character in question)
    remarks = {
        "answer": "the question",
        "reworded": "another wording: its answer must agree",
        "reasoned": "and another, with reasons before the answer",
        "doubled": "twice the answer: a mistake that is copied is not copied twofold",
    }
    models = f"model = {_inline(entry)}\n" if entry else '# model = { use = "openai:NAME" }    # or --model\n'
    parts = [
        f"# Asked of every row: {' '.join(said.split())}\n# A first draft: every line may be changed.\n",
        f"[data]\n{toml_entry(dict(data))}",
        f"[models]          # whom to ask; wordings of one model share mistakes that two models do not\n{models}",
        f"[answer]          # k: how many answers to a row may be wrong, and it is still found out\n{toml_entry(kind)}",
        *(f"[[ask]]           # {remarks[ask['id']]}\n{_entry_text(ask)}" for ask in asks),
        "[[check]]         # the last resort; cost: of one look, in the money of the calls\n" + _entry_text(person),
    ]
    return "\n".join(parts)


def _inline(entry: Mapping[str, Any]) -> str:
    return toml_entry({"x": dict(entry)}).partition(" = ")[2].rstrip("\n")


def _entry_text(entry: Mapping[str, Any]) -> str:
    """An entry with its prompt in lines of its own."""
    prompt = entry.get("prompt")
    rest = {key: value for key, value in entry.items() if key != "prompt"}
    if prompt is None:
        return toml_entry(rest)
    if "\n" not in prompt or not all(character.isprintable() or character == "\n" for character in prompt):
        return toml_entry(dict(entry))
    lines = prompt.replace("\\", "\\\\").replace('"""', '""\\"')
    lines = lines[:-1] + '\\"' if lines.endswith('"') else lines
    return f'{toml_entry(rest)}prompt = """\n{lines}"""\n'


def _told(
    key: str | None,
    truth: str | None,
    shown: Sequence[str],
    columns: Sequence[_Column],
    count: int,
    answer: _Answer,
    data: Mapping[str, str],
) -> list[str]:
    """What was assumed of the table and of the answer."""
    kinds = {
        "number": f"a number; {answer.tolerance or 0:g} off is still right" + ", whole" * answer.whole,
        "text": "a short text, compared word for word",
        "day": "a date",
        "choice": "one of " + (answer.choices if isinstance(answer.choices, str) else ", ".join(answer.choices)),
    }
    told = [f"a row is named by {'its number' if key is None else f'column {key!r}'}"]
    told.append(f"the question is about {', '.join(map(repr, shown))}")
    if truth is not None:
        told.append(f"column {truth!r} is the truth: no question shows it (--gold none if it is none)")
    gone = [repr(c.name) for c in columns if c.rows < count]
    told += [f"not shown, as some rows do not have it: {', '.join(gone)}"] if gone else []
    told += [f"the file has {name} = {value!r}" for name, value in data.items()]
    return [*told, f"the answer is {kinds[answer.kind]} ({answer.why}; --choices or --tolerance say otherwise)"]


def _told_of_money(entry: Mapping[str, Any] | None, cost: float | None, model: Model | None, written: str) -> list[str]:
    told = [f"a look of a person costs {LOOK:g}, in the money of the calls"]
    if cost is not None:
        told.append(f"a call costs about {cost:g}")
    elif entry is not None:
        told.append("a call costs nothing: a model on this machine, or one whose price is not known")
    if written:
        told.append("rewordings.toml has wordings of the model: those that you mark as reviewed are asked too")
    elif model is not None:
        told.append("the model wrote no other wording")
    return told
