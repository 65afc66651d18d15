"""The rows of the incident manager, one file a subject."""

from incidents.models.alerts import Alert, Digest, DigestState, Route, SuppressionRule
from incidents.models.bulk import BulkAction, BulkActionItem
from incidents.models.delivery import Delivery, MessageTemplate
from incidents.models.gate import GateCounter, GateOverride, GatePolicy, GateQuestion, PolicyPreset, RepeatedQuestion
from incidents.models.incident import (
    Backfill,
    FalsePositive,
    Incident,
    IncidentEvent,
    IncidentState,
    Resolution,
    RootCause,
    Span,
    SpanEvidence,
    UserReport,
)
from incidents.models.message import SUPPRESSED, Message, MessageState, UnverifiedMail, WeeklyReportMail
from incidents.models.outbox_row import NOT_LEASED
from incidents.models.subscription import Subscription

__all__ = [
    "NOT_LEASED",
    "SUPPRESSED",
    "Alert",
    "Backfill",
    "BulkAction",
    "BulkActionItem",
    "Delivery",
    "Digest",
    "DigestState",
    "FalsePositive",
    "GateCounter",
    "GateOverride",
    "GatePolicy",
    "GateQuestion",
    "Incident",
    "IncidentEvent",
    "IncidentState",
    "Message",
    "MessageState",
    "MessageTemplate",
    "PolicyPreset",
    "RepeatedQuestion",
    "Resolution",
    "RootCause",
    "Route",
    "Span",
    "SpanEvidence",
    "Subscription",
    "SuppressionRule",
    "UnverifiedMail",
    "UserReport",
    "WeeklyReportMail",
]
