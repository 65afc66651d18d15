"""Following datasets over REST. Everybody who is signed in may, for themselves."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.api.common import person
from incidents.messages import subscriptions
from incidents.models import Subscription
from incidents.shapes.following import SubscriptionSerializer
from lakehub import wiring
from lakehub.catalog.changes import any_dataset, live_dataset


class Subscriptions(ListAPIView[Subscription]):
    """The datasets that you follow."""

    scopes: ClassVar = {"GET": "incidents:read"}
    serializer_class = SubscriptionSerializer

    def get_queryset(self) -> QuerySet[Subscription]:
        return (
            Subscription.objects.filter(user=person(self.request)).select_related("dataset").order_by("dataset__name")
        )


class OneSubscription(APIView):
    scopes: ClassVar = {"PUT": "incidents:write", "DELETE": "incidents:write"}

    @extend_schema(request=None, responses=SubscriptionSerializer)
    def put(self, request: Request, name: str) -> Response:
        """You hear of the dataset's new incidents, of changes of their ETA and of their end, by e-mail."""
        dataset, user = live_dataset(name), person(request)
        subscriptions.subscribe(dataset, user=user, now=wiring.clock.now())
        return Response(SubscriptionSerializer(Subscription.objects.get(user=user, dataset=dataset)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """You hear of it no more."""
        subscriptions.unsubscribe(any_dataset(name), user=person(request), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
