from __future__ import annotations

import json
import math

import pytest

from rrf_design.cli import output


def test_json_is_one_line_without_infinities(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"a": math.inf, "b": [math.nan, 1.5], "γ": "é"})
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert json.loads(printed) == {"a": None, "b": [None, 1.5], "γ": "é"}


def test_text_of_problem_files_is_never_markup(capsys: pytest.CaptureFixture[str]) -> None:
    output.console.cache_clear()
    output.say("[red]x[/red] [link]")
    output.table("", ["a"], [["[bold]y"]])
    printed = capsys.readouterr().out
    output.console.cache_clear()
    assert "[red]x[/red] [link]" in printed
    assert "[bold]y" in printed


def test_no_bar_and_no_colour_away_from_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress_bar("margin", quiet=True) as progress:
        progress(0.5, (0.1, 0.2), "")
    assert progress.bounds == (0.1, 0.2)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import rich.console

    terminal = rich.console.Console(stderr=True, force_terminal=True, width=160, color_system=None)
    monkeypatch.setattr(output, "console", lambda *, stderr=False: terminal)
    progress = output.Progress("margin", time_limit=10.0, shown=True)
    progress(0.5, (0.125, 0.25), "")
    progress(None, (0.125, 0.2), "")
    progress.stop()
    assert "between 0.125 and 0.2" in capsys.readouterr().err


def test_words_take_the_place_of_bounds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import rich.console

    terminal = rich.console.Console(stderr=True, force_terminal=True, width=160, color_system=None)
    monkeypatch.setattr(output, "console", lambda *, stderr=False: terminal)
    progress = output.Progress("repair", time_limit=None, shown=True)
    progress(0.5, None, "best so far, not proven: a")
    progress.stop()
    assert "best so far, not proven: a" in capsys.readouterr().err
    assert output.progress_words(progress) == "repair: best so far, not proven: a"


def test_ids_are_split_at_commas() -> None:
    assert output.split_ids(None) is None
    assert output.split_ids(" a, b ,,c") == ["a", "b", "c"]


def test_an_interrupt_inside_a_kernel_is_an_interrupt() -> None:
    """Compiled code returns a result though the interrupt is set; the interpreter makes a SystemError of that, twice over."""

    def kernel(progress: output.Progress) -> None:
        progress(0.5, None, "best so far, not proven: a")
        inner = SystemError("returned a result with an exception set")
        inner.__cause__ = KeyboardInterrupt()
        raise SystemError("returned a result with an exception set") from inner

    with pytest.raises(KeyboardInterrupt) as caught, output.progress_bar("repair", quiet=True) as progress:
        kernel(progress)
    assert caught.value.__notes__ == ["repair: best so far, not proven: a"]
    with pytest.raises(SystemError), output.progress_bar("repair", quiet=True):
        raise SystemError("of another kind")


def test_a_zero_is_shown_without_the_digits_of_its_rounding() -> None:
    assert output.proven_range(0.0, 0.0) == "0"
    assert output.proven_range(0.0, 2.65e-16) == "0 (numerically: below 1e-09)"
    assert output.proven_range(0.25, 0.5) == "between 0.25 and 0.5"
