"""The secrets that a spec refers to, taken from those that were given beside it."""

from __future__ import annotations

from collections.abc import Mapping

from ingestion.spark.contract.spec import SourceSpec
from ingestion.spark.contract.strict_json import ContractError


class MissingSecret(LookupError):
    """A secret is referred to that nobody gave."""


def resolve_secret(reference: str, secrets: Mapping[str, str]) -> str:
    """The value behind `env:NAME`."""
    scheme, _, name = reference.partition(":")
    if scheme != "env" or not name:
        raise ContractError(f"{reference!r} is no reference of a secret: expected the form env:NAME.")
    try:
        return secrets[name]
    except KeyError:
        raise MissingSecret(f"The secret `{name}` was not given. Set the environment variable {name}.") from None


def resolved_options(origin: SourceSpec, secrets: Mapping[str, str]) -> dict[str, str]:
    return origin.options | {name: resolve_secret(ref, secrets) for name, ref in origin.option_refs.items()}
