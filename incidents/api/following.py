"""What an incident may reach, what its failing runs saw, and who follows a dataset, over REST."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.api.request_parsing import current_user
from incidents.api.serializers.following import EvidenceSerializer, ImpactSerializer, SubscriptionSerializer
from incidents.models import Span, Subscription
from incidents.notifications import subscriptions
from incidents.record import downstream_impact, evidence, transitions
from lakehub import wiring
from lakehub.catalog.datasets.lookup import any_dataset, live_dataset
from quality.execution.row_rights import RowRights


class Impact(APIView):
    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(responses=ImpactSerializer)
    def get(self, request: Request, number: int) -> Response:
        """Datasets made from this one where it fails, three steps far, and consumers whom the gate told of its data."""
        incident = transitions.incident_by_number(number)
        spans = list(Span.objects.filter(incident=incident).select_related("copy"))
        impact = {
            "downstream": downstream_impact.downstream_datasets(incident, spans),
            "consumers": downstream_impact.affected_consumers(incident, spans, now=wiring.clock.now()),
        }
        return Response(ImpactSerializer(impact).data)


class EvidenceList(APIView):
    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(responses=EvidenceSerializer(many=True))
    def get(self, request: Request, number: int) -> Response:
        """What the last failing run of each of its ranges saw, also after it healed; missing records by name for who may see rows."""
        rights = RowRights(request.user)
        rows = [row.seen_by(rights) for row in evidence.evidence_of(transitions.incident_by_number(number))]
        return Response([EvidenceSerializer(row).data for row in rows])


class Subscriptions(ListAPIView[Subscription]):
    """The datasets that you follow."""

    scopes: ClassVar = {"GET": "incidents:read"}
    serializer_class = SubscriptionSerializer

    def get_queryset(self) -> QuerySet[Subscription]:
        return (
            Subscription.objects.filter(user=current_user(self.request))
            .select_related("dataset")
            .order_by("dataset__name")
        )


class SubscriptionDetail(APIView):
    scopes: ClassVar = {"PUT": "incidents:write", "DELETE": "incidents:write"}

    @extend_schema(request=None, responses=SubscriptionSerializer)
    def put(self, request: Request, name: str) -> Response:
        """You hear of the dataset's new incidents, of changes of their ETA and of their end, by e-mail."""
        dataset, user = live_dataset(name), current_user(request)
        subscriptions.subscribe(dataset, user=user, now=wiring.clock.now())
        return Response(SubscriptionSerializer(Subscription.objects.get(user=user, dataset=dataset)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """You hear of it no more."""
        subscriptions.unsubscribe(any_dataset(name), user=current_user(request), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
