"""Who may ask the studio: 403 to everybody but our own page with our own token."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import ORIGIN, PORT, TOKEN

Open = Callable[..., Any]


@pytest.fixture
def studio(open_studio: Open, repaired: Path) -> Any:
    return open_studio(repaired)


def test_the_token_goes_into_a_cookie_and_out_of_the_address(studio: Any) -> None:
    answer = studio.bare.get("/items?of=out.csv&token=" + TOKEN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/items?of=out.csv")
    cookie = answer.headers["set-cookie"]
    assert f"rrf_studio_{PORT}={TOKEN}" in cookie
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in cookie.split(";")}
    assert studio.bare.get("/items?of=out.csv").status_code == 200


@pytest.mark.parametrize("path", ["/", "/items?of=out.csv", "/static/studio.js", "/alive", "/?token=wrong", "/nowhere"])
def test_without_the_token_nothing_is_shown(studio: Any, path: str) -> None:
    assert studio.bare.get(path).status_code == 403
    assert studio.bare.get(path, headers={"cookie": f"rrf_studio_{PORT}=guess"}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1:1"},
        {"host": ""},
        {"origin": "http://evil.example"},
        {"origin": "null"},
    ],
)
def test_a_foreign_host_or_origin_is_refused(studio: Any, headers: dict[str, str]) -> None:
    assert studio.own.get("/", headers=headers).status_code == 403
    assert studio.bare.get(f"/?token={TOKEN}", headers=headers).status_code == 403


def test_what_writes_needs_our_origin_and_is_no_get(studio: Any) -> None:
    assert studio.own.get("/act/label").status_code == 403
    assert studio.own.post("/act/label", json={}).status_code == 403
    assert studio.own.post("/act/label", json={}, headers={"origin": "http://evil.example"}).status_code == 403
    assert studio.bare.post("/act/label", json={}, headers={"origin": ORIGIN}).status_code == 403


def test_every_answer_has_the_policy(studio: Any) -> None:
    for answer in (studio.own.get("/"), studio.bare.get("/"), studio.own.get("/static/page.css"), studio.own.get("/x")):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_only_what_was_found_can_be_opened(studio: Any) -> None:
    for key in ("../r.toml", "/etc/passwd", "r.toml", "", "out.csv\x00"):
        for view in ("items", "item", "document"):
            assert studio.get(f"/{view}", of=key, id="1").status_code == 404
    assert studio.own.get("/static/..%2f..%2fserver.py").status_code == 404


def test_a_redirect_leads_nowhere_else(studio: Any) -> None:
    answer = studio.bare.get(f"//evil.example/?token={TOKEN}")
    assert re.match("/[^/\\\\]|/$", answer.headers["location"])
