"""Who may do what: people in teams with a role, programs with a token, how people sign in, and the audit of what was changed."""

from __future__ import annotations

from lakehub.accounts.models.audit import AuditEntry, AuditHead
from lakehub.accounts.models.people import SLUG, Membership, Role, Team, User
from lakehub.accounts.models.programs import Consumer, Token
from lakehub.accounts.models.sign_in import (
    BrowserSession,
    ExternalIdentity,
    PasswordResetRequest,
    RecoveryCode,
    SecondStep,
    SignInTries,
)

__all__ = [
    "SLUG",
    "AuditEntry",
    "AuditHead",
    "BrowserSession",
    "Consumer",
    "ExternalIdentity",
    "Membership",
    "PasswordResetRequest",
    "RecoveryCode",
    "Role",
    "SecondStep",
    "SignInTries",
    "Team",
    "Token",
    "User",
]
