"""The rows of the incident manager, one file a subject."""

from incidents.models.alerts import Alert, Digest, DigestState, Route, SuppressionRule
from incidents.models.delivery import Delivery, MessageTemplate
from incidents.models.following import BulkAction, BulkLine, Subscription
from incidents.models.gate import AskedAgain, GateCount, GateOverride, GatePolicy, GateQuestion, Preset
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
from incidents.models.message import SUPPRESSED, Message, MessageState, WeeklyLetter
from incidents.models.outgoing import FREE

__all__ = [
    "FREE",
    "SUPPRESSED",
    "Alert",
    "AskedAgain",
    "Backfill",
    "BulkAction",
    "BulkLine",
    "Delivery",
    "Digest",
    "DigestState",
    "FalsePositive",
    "GateCount",
    "GateOverride",
    "GatePolicy",
    "GateQuestion",
    "Incident",
    "IncidentEvent",
    "Message",
    "MessageState",
    "MessageTemplate",
    "Preset",
    "Resolution",
    "RootCause",
    "Route",
    "Span",
    "State",
    "Subscription",
    "SuppressionRule",
    "UserReport",
    "WeeklyLetter",
]
