"""A filter never denies a key that it holds, is wrong as seldom as was asked, and merges; a key has one form."""

from __future__ import annotations

import base64
import struct
import tracemalloc
import zlib
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pybloom_live import BloomFilter as PyBloom

from quality.domain.bloom import filters
from quality.domain.bloom.filters import (
    BadFilter,
    FilterShape,
    PybloomFilter,
    SparkBloomFilter,
    decode_filter,
    measure_false_positive_rate,
)
from quality.domain.bloom.keys import UnsupportedKeyType, decode_key, encode_key, hash_keys, in_sample, sample_order
from tests.text_strategies import any_text

KEYS = st.lists(st.binary(max_size=8), max_size=12)
PARTS = st.lists(st.none() | any_text(8), max_size=4)


def bloom(keys: list[bytes], shape: FilterShape | None = None, fpr: float = 0.001) -> SparkBloomFilter:
    made = SparkBloomFilter(shape or FilterShape.for_keys(len(keys), fpr))
    made.add(hash_keys(keys))
    return made


@given(KEYS)
def test_it_never_denies_a_key_that_it_holds(keys: list[bytes]) -> None:
    for made in (bloom(keys), decode_filter(bloom(keys).encode())):
        assert made.might_contain(keys).all()
        assert made.items == len(keys)


@given(KEYS, KEYS)
def test_the_merge_of_the_parts_is_the_filter_of_the_whole(some: list[bytes], others: list[bytes]) -> None:
    shape = FilterShape.for_keys(60, 0.01)
    merged = bloom(some, shape).union(bloom(others, shape))
    assert (
        merged.encode()
        == bloom(some + others, shape).encode()
        == bloom(others, shape).union(bloom(some, shape)).encode()
    )


def test_a_large_filter_has_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [b"%d" % number for number in range(4_000)]
    shape = FilterShape.for_keys(4_000, 0.01)
    quickly = bloom(keys, shape)
    monkeypatch.setattr(filters, "_MAX_FLAGGED_BITS", 0)
    assert bloom(keys, shape).encode() == quickly.encode()
    first = bloom(keys[:1_000], shape)
    assert first.might_contain(keys[:1_000]).all()
    first.add(hash_keys(keys[1_000:]))
    assert first.encode() == quickly.encode()


def test_keys_are_added_after_a_filter_was_read() -> None:
    keys = [b"%d" % number for number in range(2_000)]
    shape = FilterShape.for_keys(2_000, 0.01)
    read_between = bloom(keys[:500], shape)
    assert 0 < read_between.false_positive_rate() < 0.01
    read_between.add(hash_keys(keys[500:]))
    assert read_between.encode() == bloom(keys, shape).encode()


@pytest.mark.parametrize("fpr", [0.1, 0.01, 0.001])
def test_it_is_wrong_as_seldom_as_was_asked(fpr: float) -> None:
    made = bloom([b"%d" % number for number in range(4_000)], fpr=fpr)
    for measured in (measure_false_positive_rate(made.encode()), made.false_positive_rate()):
        assert fpr * 0.6 < measured < fpr * 1.5


def test_an_empty_filter_has_nothing() -> None:
    assert not bloom([]).might_contain([b"", b"1:a,", b"~,"]).any()


def test_the_bits_are_those_of_spark() -> None:
    # SELECT build_bloom_filter(id) of 0, 1, 2 on Spark 3.5.9, sized for 3 keys at 1%
    spark = "lakehub-bloom:1;layout=spark-v1;hash=xxhash64:42;bits=64;hashes=15;items=3;data=base64;AAAAAQAAAA8AAAAB7WAGtUEv9hA="
    keys = [encode_key([number]) for number in range(3)]
    assert bloom(keys, fpr=0.01).encode() == spark


def test_both_layouts_travel_as_text_and_say_which_they_are() -> None:
    keys = [encode_key([number, "UA"]) for number in range(500)]
    theirs = PybloomFilter.for_keys(500, 0.001)
    theirs.add(keys)
    for made, layout in ((bloom(keys), "spark-v1"), (theirs, "pybloom")):
        text = made.encode()
        assert f";layout={layout};" in text
        assert text.isascii()
        assert "\n" not in text
        again = decode_filter(text)
        assert again.might_contain(keys).all()
        assert again.items == 500
        assert again.encode() == text
        assert measure_false_positive_rate(text, 5_000) < 0.005


def spark_text(bits_text: str = "AAAA", **fields: str) -> str:
    head = {"layout": "spark-v1", "hash": "xxhash64:42", "bits": "64", "hashes": "1", "items": "1", "data": "base64"}
    return ";".join(["lakehub-bloom:1", *(f"{name}={value}" for name, value in (head | fields).items()), bits_text])


def pybloom_text(slices: int, slice_bits: int) -> str:
    """Bits that say so of themselves."""
    payload = struct.pack(PyBloom.FILE_FMT, 0.1, slices, slice_bits, 1, 1) + bytes(8)
    return spark_text(base64.b64encode(payload).decode(), layout="pybloom", hash="pybloom-live")


def test_a_text_that_unpacks_to_a_thousand_times_its_size_is_refused_before_it_does() -> None:
    packed = zlib.compress(bytes(48 * 2**20), 1)
    text = spark_text(base64.b64encode(packed).decode(), data="zlib+base64", bits=str(2**24))
    assert len(text) < 900_000
    tracemalloc.start()
    with pytest.raises(BadFilter, match="more than the 2,097,"):
        decode_filter(text)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 16 * 2**20


def test_an_empty_filter_of_the_largest_size_still_travels() -> None:
    text = SparkBloomFilter(FilterShape(2**27, 7)).encode()
    assert len(text) < 200_000
    assert decode_filter(text).shape == FilterShape(2**27, 7)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not begin a Bloom filter"),
        ("lakehub-bloom:1;layout=spark-v1;AAAA", "lacks hash, bits, hashes, items, data"),
        (spark_text(layout="spark-v2"), "Did you mean `spark-v1`"),
        (spark_text(hash="md5"), "hash=xxhash64:42"),
        (spark_text(), "cut off"),
        (spark_text("A"), "cannot be read"),
        (spark_text("ä"), "cannot be read"),
        (bloom([b"a"]).encode()[:-12], "not a filter of version 1|cannot be read"),
        (spark_text(layout="pybloom", hash="pybloom-live"), "not a filter of pybloom-live"),
        (spark_text(items="²"), "items=²: a number of at most 12 digits"),
        (spark_text(items="9" * 5_000), "a number of at most 12 digits"),
        (spark_text(bits=str(2**31)), "at most 1073741824 bits"),
        (spark_text(hashes=str(2**31)), "at most 1073741824 bits and 128 hashes"),
        (spark_text(hashes="0"), "hashes=0"),
        (spark_text("A" * 10_000), "10,000 characters are more than a filter"),
        (bloom([b"a"]).encode().replace("bits=64", "bits=128"), "its bits are of FilterShape.bits=64"),
        (bloom([b"a"]).encode().replace("hashes=44", "hashes=43"), "its bits are of FilterShape.bits=64"),
        (pybloom_text(2**40, 2**20), "not a filter of pybloom-live"),
        (pybloom_text(2**62, 2**62), "not a filter of pybloom-live"),
    ],
)
def test_what_is_no_filter_says_why(text: str, why: str) -> None:
    with pytest.raises(BadFilter, match=why):
        decode_filter(text)


def test_filters_of_two_shapes_do_not_merge() -> None:
    with pytest.raises(BadFilter, match="same number of keys"):
        bloom([b"a"]).union(bloom([b"%d" % number for number in range(100)]))


def test_too_large_a_filter_is_refused_with_the_remedy() -> None:
    with pytest.raises(BadFilter, match=r"matching\(this, this@dc2, 10%\)"):
        FilterShape.for_keys(10**9, 0.001)


@given(PARTS, PARTS)
def test_two_keys_never_look_alike(key: list[str | None], other: list[str | None]) -> None:
    assert decode_key(encode_key(key)) == tuple(key)
    assert (encode_key(key) == encode_key(other)) == (key == other)


def test_a_key_has_one_form() -> None:
    noon = datetime(2013, 1, 1, 12, tzinfo=UTC)
    written = {
        (None,): "~,",
        ("",): "0:,",
        ("~",): "1:~,",
        ("é",): "2:é,",
        ("UA", 1545, None): "2:UA,4:1545,~,",
        (True, False): "4:true,5:false,",
        (-3, 2**70): "2:-3,22:1180591620717411303424,",
        (
            Decimal("1.50"),
            Decimal("2.00"),
            Decimal("-0"),
            Decimal("1E+3"),
            Decimal("0.0000001"),
        ): "3:1.5,1:2,1:0,4:1000,9:0.0000001,",
        (date(2013, 1, 1),): "10:2013-01-01,",
        (noon,): "27:2013-01-01T12:00:00.000000Z,",
        (noon.astimezone(timezone(timedelta(hours=-5))),): "27:2013-01-01T12:00:00.000000Z,",
        (noon.replace(tzinfo=None),): "27:2013-01-01T12:00:00.000000Z,",
        (b"\x00\xff",): "4:00ff,",
        (UUID(int=1),): "36:00000000-0000-0000-0000-000000000001,",
    }
    assert {values: encode_key(values).decode() for values in written} == written


@pytest.mark.parametrize("value", [1.5, Decimal("NaN"), [1], {"a": 1}])
def test_what_engines_write_differently_is_no_key(value: object) -> None:
    with pytest.raises(UnsupportedKeyType, match="`delay` cannot be part of a key"):
        encode_key([1, value], ["id", "delay"])


@pytest.mark.parametrize("wrong", [b"3:ab,", b"x", b"1:a", b"2:a,b"])
def test_other_bytes_are_no_key(wrong: bytes) -> None:
    with pytest.raises(ValueError, match="not the bytes of a key"):
        decode_key(wrong)


def test_a_sample_is_chosen_by_the_keys_alone() -> None:
    hashes = hash_keys([b"%d" % number for number in range(4_000)])
    tenth = in_sample(hashes, 0.1)
    assert 0.09 < tenth.mean() < 0.11
    assert (in_sample(hashes[::-1], 0.1)[::-1] == tenth).all()
    assert in_sample(hashes, 1).all()
    assert (in_sample(hashes, 0.2) >= tenth).all()
    first = np.argsort(sample_order(hashes, "2013-01-01"))[:100]
    assert set(first) != set(np.argsort(sample_order(hashes, "2013-01-02"))[:100])
    with pytest.raises(ValueError, match="above 0%"):
        in_sample(hashes, 0)
