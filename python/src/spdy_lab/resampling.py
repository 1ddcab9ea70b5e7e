"""Bootstrap intervals with the same random numbers as ``spdy lab compare``.

The program resamples with ChaCha8 (Rust's ``rand_chacha``) from seed 1 and ``rand``'s uniform integers. This module repeats both, so
that an interval in Python equals that of the program, with any version of NumPy.
"""

import functools

import numpy as np

RESAMPLES = 2000
LEVEL = 0.95
SEED = 1

#: Values drawn at a time: bounds the memory, whatever the number of values.
_BATCH = 1 << 20
#: Blocks of ChaCha computed at a time, and how many of these parts are kept for the next interval.
_BLOCKS, _KEPT_PARTS = 1 << 12, 16
_MASK = np.uint64(0xFFFF_FFFF)


def interval(values, statistic):
    """Return the ends of the interval of ``statistic(values)``.

    ``statistic`` gets an array with one resample a row, and returns a value for each.
    """
    values = np.asarray(values, dtype=float)
    return _ends(statistic(values[indices]) for indices in _resamples(len(values)))


def interval_of_two(a, b, statistic):
    """Return the ends of the interval of ``statistic(a, b)``, whose groups are resampled separately."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return _ends(
        statistic(a[indices[:, : len(a)]], b[indices[:, len(a) :]]) for indices in _resamples(len(a), len(b))
    )


def _ends(batches):
    figures = np.sort(np.concatenate(list(batches)))
    last, tail = len(figures) - 1, (1 - LEVEL) / 2
    return figures[int(np.floor(tail * last))], figures[int(np.ceil((1 - tail) * last))]


def _resamples(*sizes):
    """Yield arrays of indices, one resample a row: of each group of these sizes as many as it has values."""
    one = np.repeat(sizes, sizes).astype(np.uint64)
    rows = max(1, _BATCH // len(one))
    position = 0
    for first in range(0, RESAMPLES, rows):
        ranges = np.tile(one, min(rows, RESAMPLES - first))
        indices, position = _uniform(ranges, position)
        yield indices.reshape(-1, len(one))


def _uniform(ranges, position):
    """Integers below each of ``ranges``, from the words of the stream at ``position``, and the position after them."""
    drawn = np.empty(len(ranges), dtype=np.intp)
    done = 0
    while done < len(ranges):
        rest = ranges[done:]
        words = _words(position, len(rest) + 1)
        product = words[:-1] * rest
        low, drawn[done:] = product & _MASK, product >> np.uint64(32)
        # Canon's method: a biased value takes one more word, which moves the rest of the stream.
        (biased,) = np.nonzero(low > np.uint64(1 << 32) - rest)
        if not len(biased):
            return drawn, position + len(rest)
        at = biased[0]
        more = (words[at + 1] * rest[at]) >> np.uint64(32)
        drawn[done + at] += int(low[at] + more > _MASK)
        position, done = position + at + 2, done + at + 1
    return drawn, position


def _words(position, count):
    """Words of ChaCha8's stream for the seed, as 64-bit integers."""
    part = 16 * _BLOCKS
    first, last = position // part, (position + count - 1) // part
    words = np.concatenate([_blocks(number * _BLOCKS, _BLOCKS) for number in range(first, last + 1)])
    return words[position - first * part :][:count]


@functools.lru_cache(maxsize=_KEPT_PARTS)
def _blocks(first, count):
    counter = np.arange(first, first + count, dtype=np.uint64)
    state = np.zeros((16, count), dtype=np.uint32)
    state[:4] = np.array([0x6170_7865, 0x3320_646E, 0x7962_2D32, 0x6B20_6574], dtype=np.uint32)[:, None]
    state[4:12] = np.array(_key(SEED), dtype=np.uint32)[:, None]
    state[12], state[13] = counter & _MASK, counter >> np.uint64(32)
    mixed = state.copy()
    for _ in range(4):
        for columns in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)):
            _quarter_round(mixed, *columns)
        for diagonals in ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            _quarter_round(mixed, *diagonals)
    return (mixed + state).T.ravel().astype(np.uint64)


def _quarter_round(state, a, b, c, d):
    for into, other, turned, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[into] += state[other]
        mixed = state[turned] ^ state[into]
        state[turned] = (mixed << np.uint32(bits)) | (mixed >> np.uint32(32 - bits))


def _key(seed):
    """The eight words of the key that ``seed_from_u64`` makes of a seed (PCG32)."""
    words, state = [], seed
    for _ in range(8):
        state = (state * 0x5851_F42D_4C95_7F2D + 0xA176_54E4_6FBE_17F3) % (1 << 64)
        mixed = (((state >> 18) ^ state) >> 27) & 0xFFFF_FFFF
        turn = state >> 59
        words.append(((mixed >> turn) | (mixed << (32 - turn) % 32)) & 0xFFFF_FFFF)
    return words
