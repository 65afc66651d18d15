"""Bloom filters that travel between engines, and the one text form that they travel in.

The text is a head and the bits, by semicolons:

    lakehub-bloom:1;layout=spark-v1;hash=xxhash64:42;bits=14400;hashes=10;items=985;data=base64;AAAAAQAAAAo...

`hash` is applied to the bytes of a key (see `keys`), `items` is how many keys went in, `data` is `base64` or
`zlib+base64` of the payload, whichever is shorter. There are two layouts:

- `spark-v1`: the serialised form of Spark's own BloomFilterImpl, version 1: three big-endian integers (1, the number of hash
  functions, the number of words) and then the 64-bit words, big-endian. A key's hash h is split by Murmur3
  (h1 = murmur(h, 0), h2 = murmur(h, h1)), and its bits are h1 + i * h2 for i = 1..k, complemented where negative, modulo bits.
  Built by Spark inside the JVM and by numpy here, bit for bit the same.
- `pybloom`: what pybloom-live writes with `BloomFilter.tofile`; its hash functions are its own (`hash=pybloom-live`), applied to
  the same bytes. It can be probed by every engine of ours; the bits of one layout cannot be turned into the other's.

Two filters of one shape merge by OR: the merge of the parts is the filter of the whole.
"""

from __future__ import annotations

import base64
import binascii
import io
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
from pybloom_live import BloomFilter

from lakehub.kernel.suggest import did_you_mean
from quality.domain.bloom.keys import SEED, Hashes, hash_keys

Flags = npt.NDArray[np.bool_]

MAGIC = "lakehub-bloom:1"
SPARK, PYBLOOM = "spark-v1", "pybloom"
MAX_BITS = 2**30
"""128 MiB; Spark's layout cannot address more than twice as many."""
_ADDED_AT_ONCE = 100_000
_MAX_FLAGGED_BITS = 2**28
"""While keys are added, each bit of a filter of at most so many has a byte of its own, 256 MiB: that is 2 to 4 times faster."""
_TRIED_BYTES = 2**20
"""Keys are spread evenly: how well the beginning of a filter compresses says it of the whole."""
_HEAD = struct.Struct(">iii")
_MAX_HASHES = 128
"""Three times what the smallest filter has of one key; a text that says more would only cost time."""
_MAX_DIGITS = 12


class BadFilter(ValueError):
    """A text is no filter, or not one that can be used here; says what is wrong with it."""


@dataclass(frozen=True)
class FilterShape:
    """`bits` is a multiple of 64."""

    bits: int
    hashes: int

    @classmethod
    def for_keys(cls, items: int, fpr: float) -> FilterShape:
        """The smallest that keeps `items` keys at false positives of `fpr`. Raises BadFilter where that is too large."""
        needed_bits = -max(items, 1) * math.log(fpr) / math.log(2) ** 2
        if needed_bits > MAX_BITS:
            raise BadFilter(
                f"{items:,} keys at {fpr:.2%} false positives need a filter of {needed_bits / 8e6:,.0f} MB; {MAX_BITS // 8_000_000} MB are the most. Compare a sample, as in matching(this, this@dc2, 10%)."
            )
        bits = math.ceil(needed_bits / 64) * 64
        return cls(bits, cls.hashes_for(items, bits))

    @staticmethod
    def hashes_for(items: int, bits: int) -> int:
        """As BloomFilter.optimalNumOfHashFunctions does it, so that both builders agree."""
        return max(1, math.floor(bits / max(items, 1) * math.log(2) + 0.5))


class KeyFilter(Protocol):
    """A set of keys that never denies one that it holds. `items` is how many went in."""

    @property
    def items(self) -> int: ...

    @property
    def shape(self) -> FilterShape: ...

    def might_contain(self, keys: Sequence[bytes]) -> Flags:
        """For each key: False where it is surely absent."""

    def encode(self) -> str:
        """The portable form."""


class SparkBloomFilter:
    """The layout `spark-v1`, vectorised over the hashes of keys."""

    def __init__(self, shape: FilterShape, *, items: int = 0, bits: npt.NDArray[np.uint8] | None = None) -> None:
        self.shape = shape
        self.items = items
        self._packed = np.zeros(shape.bits // 8, np.uint8) if bits is None else bits
        self._flags: npt.NDArray[np.uint8] | None = None
        """The bits, a byte each, from the first key that is added until they are read."""

    @property
    def _bytes(self) -> npt.NDArray[np.uint8]:
        if self._flags is not None:
            self._packed, self._flags = np.packbits(self._flags, bitorder="little"), None
        return self._packed

    def add(self, hashes: Hashes) -> None:
        add = self._add_flagged if self.shape.bits <= _MAX_FLAGGED_BITS else self._add_sorted
        for first in range(0, len(hashes), _ADDED_AT_ONCE):
            add(hashes[first : first + _ADDED_AT_ONCE])
        self.items += len(hashes)

    def _add_flagged(self, hashes: Hashes) -> None:
        if self._flags is None:
            self._flags = np.unpackbits(self._packed, bitorder="little")
        for places in _bit_positions(hashes, self.shape):
            self._flags[places.astype(np.intp)] = 1

    def _add_sorted(self, hashes: Hashes) -> None:
        """In the order of the bits: to set them one by one all over the memory takes three times as long."""
        places = np.concatenate(list(_bit_positions(hashes, self.shape)))
        places.sort()
        of_byte = places >> np.uint32(3)
        starts = np.flatnonzero(np.diff(of_byte, prepend=~of_byte[0]))
        bits = np.left_shift(np.uint8(1), (places & np.uint32(7)).astype(np.uint8))
        self._bytes[of_byte[starts]] |= np.bitwise_or.reduceat(bits, starts)

    def might_contain(self, keys: Sequence[bytes]) -> Flags:
        return self.might_contain_hashes(hash_keys(keys))

    def might_contain_hashes(self, hashes: Hashes) -> Flags:
        flags = np.ones(len(hashes), bool)
        for place in _bit_positions(hashes, self.shape):
            shift = (place & np.uint32(7)).astype(np.uint8)
            flags &= ((self._bytes.take(place >> np.uint32(3)) >> shift) & np.uint8(1)).view(bool)
        return flags

    def union(self, other: SparkBloomFilter) -> SparkBloomFilter:
        """The filter of the keys of both. Raises BadFilter unless they have one shape."""
        if self.shape != other.shape:
            raise BadFilter(
                f"Filters of {self.shape} and {other.shape} cannot be merged: build both for the same number of keys."
            )
        return SparkBloomFilter(self.shape, items=self.items + other.items, bits=self._bytes | other._bytes)

    def false_positive_rate(self) -> float:
        """The share of absent keys that it takes for present ones, by how full it is."""
        return float((int(np.bitwise_count(self._bytes).sum()) / self.shape.bits) ** self.shape.hashes)

    def payload(self) -> bytes:
        words = self._bytes.view("<u8").astype(">u8")
        return _HEAD.pack(1, self.shape.hashes, len(words)) + words.tobytes()

    def encode(self) -> str:
        return encode_filter(SPARK, self.shape, self.items, self.payload())

    @classmethod
    def from_payload(cls, payload: bytes, items: int) -> SparkBloomFilter:
        """Raises BadFilter."""
        if len(payload) < _HEAD.size:
            raise BadFilter("The filter has no head: its text was cut off.")
        version, hashes, words = _HEAD.unpack_from(payload)
        if version != 1 or hashes < 1 or words < 1 or len(payload) != _HEAD.size + 8 * words:
            raise BadFilter(
                f"{len(payload)} bytes are not a filter of version 1 with {words} words and {hashes} hashes."
            )
        bits = np.frombuffer(payload, ">u8", offset=_HEAD.size).astype("<u8").view(np.uint8)
        return cls(FilterShape(words * 64, hashes), items=items, bits=bits)


class PybloomFilter:
    """The layout `pybloom`: a filter of pybloom-live, which is a loop of Python for each key."""

    def __init__(self, bloom_filter: BloomFilter) -> None:
        self._filter = bloom_filter

    @classmethod
    def for_keys(cls, items: int, fpr: float) -> PybloomFilter:
        return cls(BloomFilter(max(items, 1), fpr))

    @property
    def items(self) -> int:
        return int(self._filter.count)

    @property
    def shape(self) -> FilterShape:
        return FilterShape(self._filter.num_bits, self._filter.num_slices)

    def add(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self._filter.add(key.decode(), skip_check=True)

    def might_contain(self, keys: Sequence[bytes]) -> Flags:
        return np.fromiter((key.decode() in self._filter for key in keys), bool, len(keys))

    def encode(self) -> str:
        payload = io.BytesIO()
        self._filter.tofile(payload)
        return encode_filter(PYBLOOM, self.shape, self.items, payload.getvalue())

    @classmethod
    def from_payload(cls, payload: bytes, items: int) -> PybloomFilter:
        """Raises BadFilter."""
        try:
            _, slices, slice_bits, _, count = struct.unpack_from(BloomFilter.FILE_FMT, payload)
            if (
                not 1 <= slices <= _MAX_HASHES
                or count != items
                or 8 * (len(payload) - _HEAD_OF_PYBLOOM) - slices * slice_bits > 8
            ):
                raise ValueError(f"{slices} slices of {slice_bits} bits with {count} keys")
            return cls(BloomFilter.fromfile(io.BytesIO(payload)))
        except (struct.error, ValueError, OverflowError) as wrong:
            raise BadFilter(f"{len(payload)} bytes are not a filter of pybloom-live: {wrong}.") from wrong


_HEAD_OF_PYBLOOM = struct.calcsize(BloomFilter.FILE_FMT)
_HASH_OF_LAYOUT = {SPARK: f"xxhash64:{SEED}", PYBLOOM: "pybloom-live"}
_LAYOUTS: dict[str, Callable[[bytes, int], KeyFilter]] = {
    SPARK: SparkBloomFilter.from_payload,
    PYBLOOM: PybloomFilter.from_payload,
}


def encode_head(layout: str, shape: FilterShape) -> str:
    """The beginning of the text, up to the number of items."""
    return f"{MAGIC};layout={layout};hash={_HASH_OF_LAYOUT[layout]};bits={shape.bits};hashes={shape.hashes};items="


def encode_filter(layout: str, shape: FilterShape, items: int, payload: bytes) -> str:
    """A half empty filter is shorter compressed, a full one is noise."""
    beginning = payload[:_TRIED_BYTES]
    packed = zlib.compress(payload, 1) if len(zlib.compress(beginning, 1)) < len(beginning) else payload
    form, data = ("zlib+base64", packed) if len(packed) < len(payload) else ("base64", payload)
    return f"{encode_head(layout, shape)}{items};data={form};{base64.b64encode(data).decode()}"


def decode_filter(text: str) -> KeyFilter:
    """The filter that a text is. Raises BadFilter."""
    magic, _, rest = text.partition(";")
    if magic != MAGIC:
        raise BadFilter(f"{magic[:40]!r} does not begin a Bloom filter: {MAGIC} is wanted.")
    *fields, data = rest.split(";")
    header = dict(field.partition("=")[::2] for field in fields)
    lacking = [name for name in ("layout", "hash", "bits", "hashes", "items", "data") if name not in header]
    if lacking:
        raise BadFilter(f"The head of the filter lacks {', '.join(lacking)}.")
    layout = header["layout"]
    if layout not in _LAYOUTS:
        raise BadFilter(f"The layout `{layout}` is not known.{did_you_mean(layout, _LAYOUTS)}")
    if header["hash"] != _HASH_OF_LAYOUT[layout]:
        raise BadFilter(
            f"hash={header['hash'][:40]} is not the one of {layout}: hash={_HASH_OF_LAYOUT[layout]} is wanted."
        )
    bits, hashes, items = (_number(header, name) for name in ("bits", "hashes", "items"))
    if not 1 <= bits <= MAX_BITS or not 1 <= hashes <= _MAX_HASHES:
        raise BadFilter(
            f"bits={bits}, hashes={hashes}: at most {MAX_BITS} bits and {_MAX_HASHES} hashes can be used here."
        )
    payload = _decode_payload(header["data"], data, most=_HEAD.size + _HEAD_OF_PYBLOOM + bits // 8 + 8)
    key_filter = _LAYOUTS[layout](payload, items)
    if key_filter.shape != FilterShape(bits, hashes):
        raise BadFilter(
            f"The head of the filter says bits={bits} and hashes={hashes}, its bits are of {key_filter.shape}."
        )
    return key_filter


def _number(header: Mapping[str, str], name: str) -> int:
    text = header[name]
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise BadFilter(f"{name}={text[:40]}: a number of at most {_MAX_DIGITS} digits is wanted.")
    return int(text)


def measure_false_positive_rate(text: str, tries: int = 20_000) -> float:
    """The share of keys that were surely never put in and that the filter takes for its own, by trying."""
    return float(decode_filter(text).might_contain(_absent_keys(tries)).mean())


@lru_cache(maxsize=2)
def _absent_keys(tries: int) -> tuple[bytes, ...]:
    """No key begins with `!`: these are in no filter."""
    return tuple(b"!%d" % number for number in range(tries))


def _decode_payload(form: str, data: str, most: int) -> bytes:
    """Unpacked to `most` bytes and no further: megabytes of text can stand for gigabytes."""
    if len(data) > 2 * most + 4:
        raise BadFilter(f"{len(data):,} characters are more than a filter of {most:,} bytes takes.")
    try:
        packed = base64.b64decode(data)
        if form != "zlib+base64":
            return packed
        unpacker = zlib.decompressobj()
        payload = unpacker.decompress(packed, most)
        if not unpacker.eof:
            raise BadFilter(
                f"The bits of the filter are cut off, or are more than the {most:,} bytes that its head allows."
            )
        return payload
    except (binascii.Error, zlib.error, ValueError) as wrong:
        if isinstance(wrong, BadFilter):
            raise
        raise BadFilter(f"The bits of the filter cannot be read ({form[:40]}): {wrong}.") from wrong


def _bit_positions(hashes: Hashes, shape: FilterShape) -> Iterator[npt.NDArray[np.uint32]]:
    """The bit of each key for one hash function after the other, as BloomFilterImpl.mightContainLong finds them."""
    first = _murmur(hashes, np.uint32(0))
    second = _murmur(hashes, first)
    combined, bits = first.copy(), np.uint32(shape.bits)
    for _ in range(shape.hashes):
        combined += second
        signed = combined.view(np.int32)
        numbers = (signed ^ (signed >> 31)).view(np.uint32)
        # The remainder: numpy vectorises division, and takes five times as long for `%`.
        yield numbers - numbers // bits * bits


def _murmur(hashes: Hashes, seed: npt.NDArray[np.uint32] | np.uint32) -> npt.NDArray[np.uint32]:
    """Murmur3_x86_32 of each 64-bit number, wrapping as the JVM does."""
    mixed = np.broadcast_to(seed, hashes.shape).astype(np.uint32)
    for half in (hashes.astype(np.uint32), (hashes >> np.uint64(32)).astype(np.uint32)):
        mixed = _rotate(mixed ^ (_rotate(half * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)), 13)
        mixed = mixed * np.uint32(5) + np.uint32(0xE6546B64)
    mixed ^= np.uint32(8)
    mixed = (mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return mixed ^ (mixed >> np.uint32(16))


def _rotate(words: npt.NDArray[np.uint32], left: int) -> npt.NDArray[np.uint32]:
    return (words << np.uint32(left)) | (words >> np.uint32(32 - left))
