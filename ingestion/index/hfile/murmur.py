"""The hash murmur 2 of byte strings as HBase computes it, for many at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestion.index.hfile.columns import ByteRanges, Lengths, byte_ranges

Hashes = npt.NDArray[np.uint32]

_M = np.uint32(0x5BD1E995)


def double_hashes(column: pa.Array) -> tuple[Hashes, Hashes]:
    """The hashes with seed 0, and those with each of these as seed. The longest strings go first: where a word is mixed in, all that have it lie side by side."""
    data, starts, lengths = byte_ranges(column)
    longest_first = np.argsort(-lengths, kind="stable")
    ordered = ByteRanges(data, starts[longest_first], lengths[longest_first])
    words, ends = _mixed_words(ordered), _last_bytes(ordered)
    hashes = np.empty((2, len(lengths)), np.uint32)
    first = _hashes(np.zeros(len(lengths), np.uint32), ordered.lengths, words, ends)
    hashes[:, longest_first] = first, _hashes(first, ordered.lengths, words, ends)
    return hashes[0], hashes[1]


def _hashes(seeds: Hashes, lengths: Lengths, words: list[Hashes], ends: Hashes) -> Hashes:
    hashes = seeds ^ lengths.astype(np.uint32)
    for word in words:
        part = hashes[: len(word)]
        part *= _M
        part ^= word
    hashes = np.where(lengths % 4 > 0, (hashes ^ ends) * _M, hashes)
    hashes ^= hashes >> np.uint32(13)
    hashes *= _M
    hashes ^= hashes >> np.uint32(15)
    return hashes


def _mixed_words(ordered: ByteRanges) -> list[Hashes]:
    """The first word of 4 bytes of all strings that have one, then the second, and so on."""
    data, starts, lengths = ordered
    # A word at each byte: numpy reads them where they lie.
    word_at = np.ndarray((max(len(data) - 3, 0),), "<u4", data, strides=(1,))
    counts = lengths // 4
    mixed = []
    for place, strings in enumerate(np.searchsorted(-counts, -np.arange(counts[0]), "left")):
        word = word_at[starts[:strings] + 4 * place] * _M
        word ^= word >> np.uint32(24)
        word *= _M
        mixed.append(word)
    return mixed


def _last_bytes(ordered: ByteRanges) -> Hashes:
    """Up to three bytes behind the last whole word; as in Java they have a sign, so one above 127 sets all higher bits."""
    data, starts, lengths = ordered
    ends = np.zeros(len(lengths), np.uint32)
    begins = starts + lengths // 4 * 4
    for place in range(3):
        there = lengths % 4 > place
        signed = data[begins[there] + place].view(np.int8).astype(np.int32).view(np.uint32)
        ends[there] ^= signed << np.uint32(8 * place)
    return ends
