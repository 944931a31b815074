"""Where an anchor's value comes from when it is bought (`source` of an anchor in the problem file).

`source = "value"`, or none: the value in the file, revealed on purchase.
`source = "expression: (a + b) * 3"`: exact arithmetic over the node's variables.
`source = { tests = [[1], [2]], expected = [1, 4] }`: public tests; the node's own program is run on
them as evidence. With `reference = "def solve(n): ..."` running that says what is expected.
`source = { verifier = "openai:NAME", prompt = "...", parser = "integer-last" }`: a noisy anchor,
which declares its sigma.
`source = "person"` or `{ person = "What to look at" }`: a review queue.
`source = { command = ["program", "argument"] }`: a program of yours, where commands are allowed.

A new source is a class (`base.Source`) and a line in `base.SOURCES`.
"""
