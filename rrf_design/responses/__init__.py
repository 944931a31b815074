"""From text to numbers: typed prompts, parsers by name, and the sandbox that runs generated code.

``parsers.get(spec).parse(text)`` gives a :class:`Parsed`; ``prompts`` renders an item in several typed ways and says which
relation each way must satisfy; ``sandbox`` runs programs under the strongest isolation the machine has.
"""

from __future__ import annotations

from rrf_design.responses import parsers, prompts
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus
from rrf_design.responses.parser_sensitivity import Sensitivity, sensitivity

__all__ = ["ParseStatus", "Parsed", "Parser", "Sensitivity", "parsers", "prompts", "sensitivity"]
