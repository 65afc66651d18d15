"""What the gate was asked, what its consumers do with an answer, and what people allowed in spite of it."""

from __future__ import annotations

from typing import ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q

from incidents.domain.gate import decide
from incidents.domain.gate.policy_vocabulary import blocks_problems
from lakehub.accounts.models import SLUG
from lakehub.catalog.models import TIERS, Dataset, DatasetCopy


def check_blocks(blocks: object) -> None:
    """Raises ValidationError that names what is wrong, with the nearest word that is known."""
    if not isinstance(blocks, list) or not all(isinstance(word, str) for word in blocks):
        raise ValidationError('Write a list of words, as in ["fail", "unknown:never_tested"].')
    problems = list(blocks_problems(blocks))
    if problems:
        raise ValidationError(problems)


class PolicyPreset(models.TextChoices):
    """Which verdicts block."""

    STRICT = "strict", "strict: fail, unknown and warn"
    LENIENT = "lenient", "lenient: fail only"
    CUSTOM = "custom", "custom: what `blocks` names"


class GatePolicy(models.Model):
    """What a consumer's jobs do with a verdict, by tier. No row: fail and unknown block, warn and pass do not."""

    consumer = models.CharField(max_length=63, validators=[SLUG])
    tier = models.PositiveSmallIntegerField(null=True, blank=True, choices=[(tier, str(tier)) for tier in TIERS])
    """None: every tier that has no policy of its own."""
    preset = models.CharField(max_length=10, choices=PolicyPreset.choices, default=PolicyPreset.CUSTOM)
    blocks = models.JSONField(default=list, blank=True, validators=[check_blocks])
    """Verdicts (`unknown`) or reasons of one (`unknown:not_due`) that block; of a custom policy."""
    shadow = models.BooleanField(default=False)
    """Answers and keeps the question, and never blocks: the answer says what it would have done."""

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["consumer", "tier"], name="one_policy_a_tier"),
            models.UniqueConstraint(fields=["consumer"], condition=Q(tier=None), name="one_policy_for_other_tiers"),
        ]
        verbose_name_plural = "gate policies"

    def __str__(self) -> str:
        return f"{self.consumer}, {'every tier' if self.tier is None else f'tier {self.tier}'}"

    def clean(self) -> None:
        if self.blocks and self.preset != PolicyPreset.CUSTOM:
            raise ValidationError({"blocks": f"A {self.preset} policy says itself what blocks: leave this empty."})

    @property
    def blocking_verdicts(self) -> frozenset[str]:
        """What blocks, whether it is a preset or custom."""
        presets = {
            PolicyPreset.STRICT.value: decide.STRICT_BLOCKS,
            PolicyPreset.LENIENT.value: decide.LENIENT_BLOCKS,
        }
        return presets.get(self.preset, frozenset(self.blocks))


class GateOverride(models.Model):
    """A person's decision that a range may be read in spite of the verdict, with the reason; it ends by itself."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="gate_overrides")
    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    """None: every copy."""
    consumer = models.CharField(max_length=63, blank=True)
    """Empty: every consumer."""
    start = models.DateTimeField()
    end = models.DateTimeField()
    reason = models.TextField()
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    """A person ended it before its time."""
    ended_by = models.CharField(max_length=150, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(end__gt=F("start")), name="an_override_has_a_range"),
            models.CheckConstraint(condition=~Q(reason=""), name="an_override_has_a_reason"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["dataset", "expires_at"], condition=Q(ended_at=None), name="override_in_force"),
            models.Index(fields=["-created_at"], name="override_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.consumer or 'everybody'} may read {self.dataset} [{self.start}, {self.end})"


class GateQuestion(models.Model):
    """A question that the gate was asked, its first time and the answer to it; the query-level score is computed from these."""

    at = models.DateTimeField()
    consumer = models.CharField(max_length=63)
    request_id = models.CharField(max_length=100)
    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="+")
    start = models.DateTimeField()
    end = models.DateTimeField()
    verdict = models.CharField(max_length=10)
    allowed = models.BooleanField()
    would_allow = models.BooleanField(default=True)
    """What the policy made of it; only one in the shadow allows what it would not."""

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["consumer", "request_id", "copy", "start", "end"], name="one_question_a_request"
            )
        ]
        indexes: ClassVar = [
            # With the copy, so that counting by copy what was asked in a window reads the index alone.
            models.Index(fields=["-at", "copy"], name="question_newest"),
            # With the range, so that what was asked of bad data is counted from the index alone.
            models.Index(fields=["copy", "at", "start", "end"], name="question_of_copy"),
        ]

    def __str__(self) -> str:
        return f"{self.consumer} about {self.copy}: {self.verdict}"


class RepeatedQuestion(models.Model):
    """A later time at which the same question was asked, for windows that do not hold its first."""

    question = models.ForeignKey(GateQuestion, on_delete=models.CASCADE, related_name="again")
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["question", "at"], name="asked_again_once_a_moment")]
        indexes: ClassVar = [models.Index(fields=["at"], name="asked_again_at")]

    def __str__(self) -> str:
        return f"{self.question}, again"


class GateCounter(models.Model):
    """What the web processes counted together, such as questions that could not be kept."""

    name = models.CharField(max_length=40, primary_key=True)
    count = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name}: {self.count}"
