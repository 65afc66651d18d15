"""Instants in the bodies of requests: only such as every time zone can show."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rest_framework import serializers

from lakehub.kernel.interval import BEGINNING, FOREVER


class InstantField(serializers.DateTimeField):
    """9999-12-31T23:59Z has no date east of Greenwich: a page that shows it to somebody there could not be made."""

    def to_internal_value(self, value: Any) -> datetime:
        try:
            instant = super().to_internal_value(value)
            if BEGINNING <= instant <= FOREVER:
                return instant
        except OverflowError:  # with its offset it lies outside of all calendars
            pass
        raise serializers.ValidationError(f"{value} lies outside the years 1900 to 9998.")
