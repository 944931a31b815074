"""From text to numbers: parsers by name, and the sandbox that runs generated code.

``parsers.get(spec).parse(text)`` gives a :class:`Parsed`; ``sandbox`` runs programs under the
strongest isolation the machine has; ``separating_inputs`` looks for tests on which programs differ;
``number_occurs``, ``day_occurs`` and ``words_occur`` say whether a text may have a value in it.
"""

from __future__ import annotations

from rrf_design.responses import parsers
from rrf_design.responses._programs import SeparatingInput, separating_inputs
from rrf_design.responses._programs import extract as extract
from rrf_design.responses._written import day_occurs, number_occurs, numbers_written, words_occur
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus
from rrf_design.responses.parsers import Sensitivity, sensitivity

__all__ = [
    "ParseStatus",
    "Parsed",
    "Parser",
    "Sensitivity",
    "SeparatingInput",
    "day_occurs",
    "number_occurs",
    "numbers_written",
    "parsers",
    "sensitivity",
    "separating_inputs",
    "words_occur",
]
