"""What the views share: bodies that are checked, who asks, words that are known."""

from __future__ import annotations

from typing import Any, cast

from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer, Serializer

from lakehub.accounts.models import User
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean


def validated_body(shape: type[Serializer[Any]], request: Request) -> dict[str, Any]:
    serializer: BaseSerializer[Any] = shape(data=request.data)
    serializer.is_valid(raise_exception=True)
    return cast("dict[str, Any]", serializer.validated_data)


def current_user(request: Request) -> User:
    return cast("User", request.user)  # HasScope lets nobody else in


def checked_choice(name: str, value: str, choices: list[str]) -> str:
    if value not in choices:
        raise Refused.for_fields({name: f"There is no {name} `{value}`.{did_you_mean(value, choices)}"})
    return value
