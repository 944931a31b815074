"""Reading a folder of answers as codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rrf_design.errors import InputError
from rrf_design.risk import UNREADABLE
from scenarios.promises.panels import NOBODY, folder_of, panel_names, read_panel


def test_equal_answers_have_equal_codes_and_silence_has_none(made_up_answers: Path) -> None:
    panel = read_panel(made_up_answers, "crux")
    assert panel.answers.shape == (160, 8)
    assert 0.005 < (panel.answers == UNREADABLE).mean() < 0.05
    assert (panel.answers == panel.gold[:, None]).mean() > 0.75
    assert set(panel.gold[panel.gold < 0].tolist()) <= {NOBODY}


def test_a_panel_may_share_the_answers_of_its_set(made_up_answers: Path) -> None:
    assert "gsm8k-small" in panel_names(made_up_answers)
    whole, part = read_panel(made_up_answers, "gsm8k"), read_panel(made_up_answers, "gsm8k-small")
    assert (whole.answers == part.answers).all()


def test_bad_input_is_one_line(made_up_answers: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give their folder: --set answers=FOLDER"):
        folder_of(None)
    with pytest.raises(InputError, match=r"there is no panels\.json"):
        folder_of(tmp_path)
    with pytest.raises(InputError, match="has no panel 'none'"):
        read_panel(made_up_answers, "none")
    (tmp_path / "panels.json").write_text('{"x": {"nodes": []}}', encoding="utf-8")
    with pytest.raises(InputError, match=r"x?\.table\.jsonl\.gz: can't be read"):
        read_panel(tmp_path, "x")
