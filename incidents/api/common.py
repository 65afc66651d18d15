"""What the views share: bodies that are checked, who asks, words that are known."""

from __future__ import annotations

from typing import Any, cast

from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer, Serializer

from lakehub.accounts.models import User
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean


def valid(shape: type[Serializer[Any]], request: Request) -> dict[str, Any]:
    said: BaseSerializer[Any] = shape(data=request.data)
    said.is_valid(raise_exception=True)
    return cast("dict[str, Any]", said.validated_data)


def person(request: Request) -> User:
    return cast("User", request.user)  # HasScope lets nobody else in


def known(name: str, value: str, known: list[str]) -> str:
    if value not in known:
        raise Refused.because({name: f"There is no {name} `{value}`.{did_you_mean(value, known)}"})
    return value
