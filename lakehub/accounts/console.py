"""The admin console of rows that only use cases write: nobody has a form for them, and an action needs the right to change them."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.http import HttpRequest


class ReadOnly:
    """To be mixed into a ModelAdmin or an inline, before it. An action that changes something names `permissions=["act"]`."""

    model: Any

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_act_permission(self, request: HttpRequest) -> bool:
        """The right to change, which `has_change_permission` gives no form for."""
        meta = self.model._meta
        return bool(request.user.has_perm(f"{meta.app_label}.change_{meta.model_name}"))
