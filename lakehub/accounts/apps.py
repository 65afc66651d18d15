from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "lakehub.accounts"
    label = "accounts"
