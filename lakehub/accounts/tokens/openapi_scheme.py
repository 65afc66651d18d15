"""How the API's description names our tokens. Imported with the addresses, as drf-spectacular finds extensions by import: a
process that serves none loads no REST framework."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema


class TokenAuthenticationScheme(OpenApiAuthenticationExtension):
    target_class = "lakehub.accounts.tokens.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "description": "A token of `manage.py issue_token`."}


class TokenAsPasswordAuthenticationScheme(OpenApiAuthenticationExtension):
    target_class = "lakehub.accounts.tokens.authentication.TokenAsPasswordAuthentication"
    name = "tokenAsPassword"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {"type": "http", "scheme": "basic", "description": "The same token as the password of any user."}
