"""The rows of the incident manager, one file a subject."""

from incidents.models.following import BulkAction, BulkLine, Subscription
from incidents.models.gate import GatePolicy, GateQuestion
from incidents.models.incident import (
    Backfill,
    FalsePositive,
    Incident,
    IncidentEvent,
    Resolution,
    RootCause,
    Span,
    State,
    UserReport,
)
from incidents.models.message import Message, MessageState, WeeklyLetter

__all__ = [
    "Backfill",
    "BulkAction",
    "BulkLine",
    "FalsePositive",
    "GatePolicy",
    "GateQuestion",
    "Incident",
    "IncidentEvent",
    "Message",
    "MessageState",
    "Resolution",
    "RootCause",
    "Span",
    "State",
    "Subscription",
    "UserReport",
    "WeeklyLetter",
]
