"""What a password must be, beside long: not one that was seen in a breach, not easy to guess, not made of one's own names.

zxcvbn holds the 30,000 passwords that were found most often in breaches, and words and names of English, all offline. It takes a
password apart into such pieces, dates, keyboard walks and repetitions, and estimates how many guesses it takes. Django's own list
of 20,000 common passwords is asked too (settings.AUTH_PASSWORD_VALIDATORS).
"""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from zxcvbn import zxcvbn

MIN_LENGTH = 12
_LOOKED_AT = 32
"""Characters that zxcvbn looks at: it takes longer with the square of them, and for each way to read signs and digits as letters, of
which there are hundreds."""
_LEAST_SCORE = 3
"""Of 0 to 4: 10^8 guesses or more, which is safe where each guess is slow."""
_LEAST_NAME_LENGTH = 3
_NO_LETTER_OR_DIGIT = re.compile(r"[\W_]+")
_PRODUCT_WORDS = ("lakehub", "password")


class GuessablePasswordValidator:
    """Refuses what a list of breached passwords or an estimate of guesses shows to be weak."""

    def validate(self, password: str, user: AbstractBaseUser | None = None) -> None:
        if not password:
            return
        estimate = zxcvbn(password[:_LOOKED_AT], user_inputs=[*own_names(user), *_PRODUCT_WORDS])
        if estimate["score"] < _LEAST_SCORE:
            why = estimate["feedback"]["warning"] or "It is made of common words, dates or keys."
            raise ValidationError(f"This password is too easy to guess. {why} Use four random words.", code="guessable")

    def get_help_text(self) -> str:
        return "It must not be in the list of breached passwords, or easy to guess."


class OwnNamesValidator:
    """Without the person's names, what is left must still be long enough."""

    def validate(self, password: str, user: AbstractBaseUser | None = None) -> None:
        left = _plain(password)
        for name in sorted(own_names(user), key=len, reverse=True):
            left = left.replace(name, "")
        if left != _plain(password) and len(left) < MIN_LENGTH:
            raise ValidationError(
                f"This password is mostly your own name or address. Without it, {MIN_LENGTH} letters and digits must be left.",
                code="own_names",
            )

    def get_help_text(self) -> str:
        return "It must not be made of your name or your mail address."


def own_names(user: AbstractBaseUser | None) -> list[str]:
    """Parts of the person's names and of what stands before the @, in small letters, without signs."""
    fields: dict[str, Any] = {
        name: getattr(user, name, "") for name in ("username", "first_name", "last_name", "email")
    }
    fields["email"] = fields["email"].partition("@")[0]
    words = {word for value in fields.values() for word in _NO_LETTER_OR_DIGIT.split(value.lower())}
    words |= {_plain(value) for value in fields.values()}
    return sorted(word for word in words if len(word) >= _LEAST_NAME_LENGTH)


def _plain(text: str) -> str:
    return _NO_LETTER_OR_DIGIT.sub("", text.lower())
