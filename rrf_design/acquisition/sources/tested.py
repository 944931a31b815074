"""Public tests, with expected outputs or a reference program that gives them.

source = { tests = [[1], [2]], expected = [1, 4] }
source = { tests = [[1], [2]], reference = "def solve(n): ..." }
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.sources.base import Asked, Fetched, Place, Source
from rrf_design.errors import InputError

if TYPE_CHECKING:
    pass


class Tests(Source):
    """Expected outputs of public tests.

    The program of the node is run on them too: evidence, never the value.
    """

    __test__ = False  # not a test case, whatever its name
    kind = "tests"

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        from rrf_design.responses.sandbox import Program

        super().__init__(place, options)
        tests, expected = options.pop("tests"), options.pop("expected", None)
        reference, entry = options.pop("reference", None), str(options.pop("entry", "solve"))
        if (expected is None) == (reference is None):
            raise InputError("tests need either expected values or a reference program")
        for name, given in (("tests", tests), ("expected", expected)):
            if given is not None and not isinstance(given, list | tuple):
                raise InputError(f"{name} is {given!r:.60}; give a list with one entry per row of the anchor")
        if reference is not None and not isinstance(reference, str):
            raise InputError(f"reference is {reference!r:.60}; give the program as text")
        self.tests, self.expected, self.reference, self.entry = tests, expected, reference, entry
        self.isolation = place.tools.isolation
        Program.build(reference or "", tests, expected=expected, entry=entry)  # checks the shapes now, not mid-run
        if len(tests) != self.rows:
            raise InputError(f"{len(tests)} tests for {self.rows} rows; each test is one row of the anchor")

    def fetch(self, asked: Asked) -> Fetched:
        from rrf_design.responses.sandbox import Program, Sandbox

        with Sandbox(workers=1, require=self.isolation) as box:
            expected, evidence = self.expected, {}
            if self.reference is not None:
                ran = box.run(Program.build(self.reference, self.tests, entry=self.entry))
                evidence["reference"] = ran.document()
                if any(output is None for output in ran.outputs):
                    return Fetched(f"the reference program ended with: {ran.status.value}", evidence=evidence)
                expected = list(ran.outputs)
            text = asked.texts.get(self.anchor.nodes[0])
            if text is not None:
                program = Program.build(_program(text, self.entry), self.tests, expected=expected, entry=self.entry)
                evidence["execution"] = box.run(program).document()
        return self.fitting(expected, "tested", evidence=evidence)


def _program(text: str, entry: str) -> str:
    """The program inside an answer, as the code parser finds it."""
    from rrf_design.responses import extract

    return extract(text, entry) or ""
