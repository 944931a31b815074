"""Overlaps of sparse bases, and orthonormal bases with a proven error: Gram–Schmidt, done twice,
measured afterwards.

For columns A (unit length or zero) it gives U and R with A ≈ UR. Measured are δ = ‖UᵀU − I‖ and η =
‖A − UR‖, each with the rounding of the measurement added. AR⁻¹ spans exactly what A spans and
differs from U by at most η‖R⁻¹‖, so the projector UUᵀ is within δ + η‖R⁻¹‖/√(1 − δ) of the exact
one: a bound on what was computed, whatever the way.
"""

from __future__ import annotations

import numpy as np

from solvers.kernels.kernel import kernel

UNIT = 2.0**-53


@kernel
def orthonormal(columns, error, dependent):  # type: ignore[no-untyped-def]
    """Basis (rank, rows) of the columns (count, rows), the bound on its projector's error, and
    whether one was dropped.

    `error` bounds ‖columns − exact ones‖. Columns that are nearer than `dependent` to the span of
    those before them are dropped; the bound is then about the span of the others.
    """
    count, height = columns.shape
    basis = np.zeros((count, height))
    kept = np.zeros(count, dtype=np.int64)
    factor = np.zeros((count, count))
    rank = 0
    dropped = False
    for a in range(count):
        largest = 0.0
        for r in range(height):
            largest = max(largest, abs(columns[a, r]))
        if largest == 0.0:
            continue
        for r in range(height):
            basis[rank, r] = columns[a, r]
        for _ in range(2):
            for b in range(rank):
                value = 0.0
                for r in range(height):
                    value += basis[b, r] * basis[rank, r]
                factor[b, rank] += value
                for r in range(height):
                    basis[rank, r] -= value * basis[b, r]
        value = 0.0
        for r in range(height):
            value += basis[rank, r] * basis[rank, r]
        value = np.sqrt(value)
        if not value > dependent:
            dropped = True
            for b in range(rank):
                factor[b, rank] = 0.0
            for r in range(height):
                basis[rank, r] = 0.0
            continue
        factor[rank, rank] = value
        for r in range(height):
            basis[rank, r] /= value
        kept[rank] = a
        rank += 1
    if rank == 0:
        return basis[:0], 0.0, dropped
    return basis[:rank], _projector_error(columns, basis, factor, kept, rank, error), dropped


@kernel
def _projector_error(columns, basis, factor, kept, rank, error):  # type: ignore[no-untyped-def]
    height = columns.shape[1]
    skew, gap, size, inverse = 0.0, 0.0, 0.0, 0.0
    for a in range(rank):
        for b in range(a + 1):
            value = -1.0 if a == b else 0.0
            for r in range(height):
                value += basis[a, r] * basis[b, r]
            skew += value * value if a == b else 2.0 * value * value
            size += factor[b, a] * factor[b, a]
        for r in range(height):
            value = columns[kept[a], r]
            for b in range(a + 1):
                value -= basis[b, r] * factor[b, a]
            gap += value * value
    skew = np.sqrt(skew) + 1.1 * rank * (height + 3) * UNIT
    gap = np.sqrt(gap) * (1.0 + (height + 3) * UNIT) + 1.3 * (rank + 2) * UNIT * rank * np.sqrt(size)
    upper = np.zeros((rank, rank))
    for a in range(rank):
        for b in range(a, -1, -1):
            value = 1.0 if a == b else 0.0
            for c in range(b + 1, a + 1):
                value -= factor[b, c] * upper[c, a]
            upper[b, a] = value / factor[b, b]
            inverse += upper[b, a] * upper[b, a]
    inverse = np.sqrt(inverse)
    # ‖R⁻¹‖ ≤ ‖X‖ / (1 − ‖I − RX‖), and back substitution keeps |I − RX| below a few units of
    # |R||X|.
    loose = 1.2 * (rank + 3) * UNIT * np.sqrt(size) * inverse
    if skew > 0.1 or not loose < 0.1:
        return np.inf
    return skew + 1.1 * (gap + error) * inverse / (1.0 - loose) / np.sqrt(1.0 - skew)


@kernel
def column_products(pointers, rows, values, vector):  # type: ignore[no-untyped-def]
    """Qᵀv of a matrix in compressed columns."""
    result = np.empty(len(pointers) - 1)
    for column in range(len(result)):
        total = 0.0
        for entry in range(pointers[column], pointers[column + 1]):
            total += values[entry] * vector[rows[entry]]
        result[column] = total
    return result


@kernel
def touched_part(pointers, rows, values, columns):  # type: ignore[no-untyped-def]
    """The rows that some columns touch, sorted, and these columns over them, as (columns, rows)."""
    total = 0
    for column in columns:
        total += pointers[column + 1] - pointers[column]
    touched = np.empty(total, dtype=np.int64)
    place = 0
    for column in columns:
        for entry in range(pointers[column], pointers[column + 1]):
            touched[place] = rows[entry]
            place += 1
    touched.sort()
    count = 0
    for place in range(total):
        if place == 0 or touched[place] != touched[place - 1]:
            touched[count] = touched[place]
            count += 1
    touched = touched[:count].copy()
    block = np.zeros((len(columns), count))
    for index in range(len(columns)):
        for entry in range(pointers[columns[index]], pointers[columns[index] + 1]):
            block[index, np.searchsorted(touched, rows[entry])] = values[entry]
    return touched, block


@kernel
def node_grams(pointers, rows, values, height, width):  # type: ignore[no-untyped-def]
    """Q_jᵀQ_j of every node of a matrix in compressed columns, as (n, width, width)."""
    n = (len(pointers) - 1) // width
    result = np.zeros((n, width, width))
    spread = np.zeros(height)
    for j in range(n):
        for a in range(width):
            first = j * width + a
            for entry in range(pointers[first], pointers[first + 1]):
                spread[rows[entry]] = values[entry]
            for b in range(a + 1):
                total = 0.0
                for entry in range(pointers[j * width + b], pointers[j * width + b + 1]):
                    total += values[entry] * spread[rows[entry]]
                result[j, a, b] = total
                result[j, b, a] = total
            for entry in range(pointers[first], pointers[first + 1]):
                spread[rows[entry]] = 0.0
    return result


@kernel
def sparse_overlap(pointers, rows, values, height, width):  # type: ignore[no-untyped-def]
    """Q_iᵀQ_j for all i < j that share a row, of bases in compressed columns: pointers, neighbours
    (sorted), blocks.

    Several times faster than a general sparse product for the small matrices that are decoded by
    the thousand.
    """
    columns = len(pointers) - 1
    n = columns // width
    starts = np.zeros(height + 1, dtype=np.int64)
    for entry in range(pointers[columns]):
        starts[rows[entry] + 1] += 1
    for r in range(height):
        starts[r + 1] += starts[r]
    places, inside = starts[:-1].copy(), np.empty(pointers[columns], dtype=np.int64)
    owners = np.empty(pointers[columns], dtype=np.int64)
    for column in range(columns):
        for entry in range(pointers[column], pointers[column + 1]):
            place = places[rows[entry]]
            inside[place], owners[place] = entry, column
            places[rows[entry]] += 1
    ends, neighbours, most = _overlapping(pointers, rows, starts, owners, n, width)
    blocks = np.zeros((most, width, width))
    where = np.full(n, -1, dtype=np.int64)
    for i in range(n):
        for place in range(ends[i], ends[i + 1]):
            where[neighbours[place]] = place
        for a in range(width):
            for entry in range(pointers[i * width + a], pointers[i * width + a + 1]):
                row = rows[entry]
                for other in range(starts[row], starts[row + 1]):
                    column = owners[other]
                    j = column // width
                    if j > i:
                        blocks[where[j], a, column % width] += values[entry] * values[inside[other]]
    return ends, neighbours, blocks


@kernel
def _overlapping(pointers, rows, starts, owners, n, width):  # type: ignore[no-untyped-def]
    """For every node the later nodes that share a row with it, sorted; and how many there are in
    all.
    """
    ends = np.zeros(n + 1, dtype=np.int64)
    seen = np.full(n, -1, dtype=np.int64)
    for i in range(n):
        count = 0
        for entry in range(pointers[i * width], pointers[(i + 1) * width]):
            row = rows[entry]
            for other in range(starts[row], starts[row + 1]):
                j = owners[other] // width
                if j > i and seen[j] != i:
                    seen[j] = i
                    count += 1
        ends[i + 1] = ends[i] + count
    neighbours = np.empty(ends[n], dtype=np.int64)
    seen[:] = -1
    for i in range(n):
        place = ends[i]
        for entry in range(pointers[i * width], pointers[(i + 1) * width]):
            row = rows[entry]
            for other in range(starts[row], starts[row + 1]):
                j = owners[other] // width
                if j > i and seen[j] != i:
                    seen[j] = i
                    neighbours[place] = j
                    place += 1
        if place - ends[i] > 32:
            neighbours[ends[i] : place].sort()
            continue
        for last in range(ends[i] + 1, place):  # insertion: a call of sort costs more than so few neighbours
            j, free = neighbours[last], last
            while free > ends[i] and neighbours[free - 1] > j:
                neighbours[free] = neighbours[free - 1]
                free -= 1
            neighbours[free] = j
    return ends, neighbours, ends[n]
