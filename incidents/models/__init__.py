"""The rows of the incident manager, one file a subject."""

from incidents.models.gate import GatePolicy, GateQuestion
from incidents.models.incident import (
    Backfill,
    FalsePositive,
    Incident,
    IncidentEvent,
    Resolution,
    Span,
    State,
    UserReport,
)
from incidents.models.message import Message, MessageState, WeeklyLetter

__all__ = [
    "Backfill",
    "FalsePositive",
    "GatePolicy",
    "GateQuestion",
    "Incident",
    "IncidentEvent",
    "Message",
    "MessageState",
    "Resolution",
    "Span",
    "State",
    "UserReport",
    "WeeklyLetter",
]
