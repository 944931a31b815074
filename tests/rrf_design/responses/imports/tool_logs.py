"""Logs written the way that the tools write them, for the tests of their readers."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

from backports import zstd

from rrf_design.responses.imports import read_logs
from rrf_design.responses.imports._records import ImportedRow, RecordPaths

MODEL = "openai/gpt-4.1-mini"
HEADER = {"version": 2, "status": "success", "eval": {"task": "invoices", "model": "openai/gpt-4.1-mini"}}


def eval_file(path: Path, members: dict[str, Any], *, method: int = 93, lie: int | None = None) -> Path:
    """A zip as Inspect writes it: members compressed by zstd (method 93), which the standard
    library can't write.
    """
    directory, body = b"", b""
    for name, content in members.items():
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        packed = zstd.compress(data) if method == 93 else data
        size = len(data) if lie is None else lie
        common = struct.pack(
            "<HHHHHIIIHH", 20, 0, method, 0, 0, zlib.crc32(data), len(packed), size, len(name.encode()), 0
        )
        head = b"PK\x03\x04" + common + name.encode()
        directory += b"PK\x01\x02\x14\x00" + common + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name.encode()
        body += head + packed
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    path.write_bytes(body + directory + end)
    return path


def sample(number: int, epoch: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "epoch": epoch,
        "metadata": {"invoice": f"00{number}", "wording": "total"},
        "output": {
            "model": "gpt",
            "choices": [{"message": {"role": "assistant", "content": f"old {number}"}}],
            "completion": f"{number}.50",
        },
        "scores": {"match": {"value": float("nan")}},
        "model_usage": {"openai/gpt-4.1-mini": {"input_tokens": 5, "total_cost": 0.25}},
        **more,
    }


def rows(*paths: Path, tool: str = "auto", **where: str) -> list[ImportedRow]:
    return list(read_logs(paths, tool, where=RecordPaths(**where)))


def batch(custom: Any, body: Any, code: int = 200, error: Any = None) -> dict[str, Any]:
    return {
        "id": "batch_req_1",
        "custom_id": custom,
        "response": {"status_code": code, "request_id": "r", "body": body},
        "error": error,
    }


def chat(*texts: str | None, refusal: str | None = None) -> dict[str, Any]:
    choices = [
        {"index": i, "message": {"role": "assistant", "content": text, "refusal": refusal}}
        for i, text in enumerate(texts)
    ]
    return {"object": "chat.completion", "model": "gpt-x", "choices": choices, "usage": {"total_tokens": 3}}


def lines_in(path: Path, *objects: Any) -> Path:
    """A file with a line of JSON for each object."""
    path.write_text("".join(json.dumps(one) + "\n" for one in objects))
    return path
