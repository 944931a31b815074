"""Bad rows are named together: who mends a table wants all of its faults at once, before anything is bought."""

from __future__ import annotations

from rrf_design.errors import InputError

SHOWN = 10
"""Faults that are told one by one; the rest is counted."""


class RowFaults:
    """Collects what is wrong with the rows of one table; `refuse` raises them as one line."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.told: list[tuple[int, str]] = []
        self._rows: set[int] = set()
        self.unread = 0
        """Rows that the table left out because they could not be read."""

    def skip(self, row: int, message: str) -> None:
        """A row that can't even be read."""
        self.unread += 1
        self.add(row, message)

    def add(self, row: int, message: str) -> None:
        self._rows.add(row)
        if len(self.told) < SHOWN:
            self.told.append((row, message))

    @property
    def count(self) -> int:
        """Rows with at least one fault."""
        return len(self._rows)

    def refuse(self, total: int) -> None:
        """InputError if there is any fault; `total` is the number of rows seen."""
        if not self._rows:
            return
        shown = len({row for row, _ in self.told})
        more = f"; and {self.count - shown} more" if self.count > shown else ""
        told = "; ".join(f"row {row}: {message}" for row, message in sorted(self.told))
        raise InputError(f"{self.table}: {self.count} of {total} rows can't be used: {told}{more}")
