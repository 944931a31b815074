"""Secrets: what is hidden before anything is written or shown."""

from __future__ import annotations

import json

import pytest

from rrf_design.acquisition.redaction import HIDDEN, Redactor, password_of, secret_name, without_password

KEY = "not-a-real-key-1234567890"


@pytest.fixture
def redactor() -> Redactor:
    return Redactor(["pass/word"], environment={"SOME_API_KEY": KEY, "HOME": "/home/someone", "SHORT_TOKEN": "abc"})


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"wrong key {KEY}.", f"wrong key {HIDDEN}."),
        ("postgresql://me:pass%2Fword@host", f"postgresql://me:{HIDDEN}@host"),
        ("Authorization: Bearer abcdefghijkl", f"Authorization: Bearer {HIDDEN}"),
        ("sk-abcdefghijklmnop", HIDDEN),
        ("abc and /home/someone stay", "abc and /home/someone stay"),
    ],
)
def test_texts(redactor: Redactor, text: str, clean: str) -> None:
    assert redactor.text(text) == clean


@pytest.mark.parametrize("name", ["sk", "pk", "hf", "gsk", "xai", "ghp"])
@pytest.mark.parametrize("dash", "-_")
def test_every_shape_has_a_sign_that_the_quick_look_knows(name: str, dash: str) -> None:
    assert Redactor(environment={}).text(f"({name}{dash}{'x1' * 8})") == f"({HIDDEN})"


def test_more_can_be_hidden_later(redactor: Redactor) -> None:
    redactor.add(["given as an option"])
    assert redactor.text(f"{KEY} given as an option") == f"{HIDDEN} {HIDDEN}"
    assert secret_name("api_key")
    assert not secret_name("base_url")


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("max_tokens", False),
        ("max_completion_tokens", False),
        ("MAX_OUTPUT_TOKENS", False),
        ("n_tokens", False),
        ("token", True),
        ("access_token", True),
        ("API_TOKENS", True),
        ("Authorization", True),
    ],
)
def test_how_many_tokens_is_no_secret(name: str, secret: bool) -> None:
    """A limit that was taken for one was left out of the header, and hidden wherever its digits
    stood in an answer.
    """
    assert secret_name(name) is secret
    assert Redactor(environment={name: "100000"}).text("It is 100000.") == (
        f"It is {HIDDEN}." if secret else "It is 100000."
    )


def test_documents_are_cleaned_through_and_through() -> None:
    redactor = Redactor([KEY, 'quo"ted\\secret', "schlüssel-wort"], environment={})
    document = {KEY: [{"a": [KEY, 1, None, True]}], "b": 'quo"ted\\secret', "c": "schlüssel-wort", "n": 1.5}
    clean = {HIDDEN: [{"a": [HIDDEN, 1, None, True]}], "b": HIDDEN, "c": HIDDEN, "n": 1.5}
    assert json.loads(redactor.json(document)) == clean


def test_store_addresses_are_shown_without_their_password() -> None:
    address = "postgresql://me:p%40ss@host:5432/db"
    assert without_password(address) == "postgresql://me:***@host:5432/db"
    assert set(password_of(address)) == {"p%40ss", "p@ss"}
    assert without_password("sqlite:///runs.sqlite") == "sqlite:///runs.sqlite"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:a/b#c@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:a@b@host/db", "postgresql://me:***@host/db"),
        ("postgresql://host/db?password=secret&user=me", "postgresql://host/db?password=***&user=me"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
    ],
)
def test_careless_addresses_are_shown_without_their_password(address: str, shown: str) -> None:
    assert without_password(address) == shown
