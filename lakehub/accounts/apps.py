from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "lakehub.accounts"
    label = "accounts"

    def ready(self) -> None:
        from lakehub.accounts.tokens import openapi_scheme  # noqa: F401 - registers itself
