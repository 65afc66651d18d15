"""The character sets of MySQL and MariaDB as Python's codecs."""

from __future__ import annotations

_CODECS = {
    **dict.fromkeys(("utf8mb4", "utf8mb3", "utf8"), "utf-8"),
    **{name: name for name in ("ascii", "cp850", "cp852", "cp866", "cp932", "cp1250", "cp1251", "cp1256", "cp1257")},
    **{name: name for name in ("gbk", "gb2312", "gb18030", "big5")},
    **dict.fromkeys(("ucs2", "utf16"), "utf-16-be"),
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "hp8": "hp-roman8",
    "latin1": "cp1252",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "sjis": "shift_jis",
    **dict.fromkeys(("ujis", "eucjpms"), "euc_jp"),
    "euckr": "cp949",
    "tis620": "iso8859-11",
    "macroman": "mac_roman",
    "macce": "mac_latin2",
}


def codec_of(charset: str) -> str | None:
    """None: Python has none for it."""
    return _CODECS.get(charset)


def decoded(text: bytes, codec: str) -> str:
    """Raises UnicodeDecodeError. MySQL's latin1 is cp1252 with a meaning for its five empty places."""
    if codec != "cp1252":
        return text.decode(codec)
    try:
        return text.decode(codec)
    except UnicodeDecodeError:
        return "".join(bytes([byte]).decode("latin-1" if byte in _EMPTY_PLACES else codec) for byte in text)


_EMPTY_PLACES = frozenset((0x81, 0x8D, 0x8F, 0x90, 0x9D))
