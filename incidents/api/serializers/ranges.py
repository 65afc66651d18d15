"""What several answers hold."""

from __future__ import annotations

from rest_framework import serializers

from lakehub.kernel.interval import Interval


class RangeSerializer(serializers.Serializer[Interval]):
    """Half-open: `[start, end)`."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
