"""Hidden tests.

Only the evaluation of finished choices imports this module; a test holds the rest to that.
"""

from __future__ import annotations

from scenarios.real_model.programs import Arguments, AskedProgram, draw_tests

HIDDEN_TESTS = 16


def hidden_tests(item: AskedProgram) -> tuple[Arguments, ...]:
    """The sixteen hidden inputs of an item, from a seed of their own."""
    return draw_tests(item.family, [item.seed, 3, item.index], HIDDEN_TESTS)


def hidden_truth(item: AskedProgram) -> tuple[int, ...]:
    return tuple(item.family.reference(*arguments) for arguments in hidden_tests(item))
