"""The index of a dataset's copies over REST."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ingestion.runs.index_use.serializers import IndexStateSerializer
from ingestion.runs.index_use.states import index_states
from lakehub.catalog.datasets.lookup import live_dataset


class IndexStateList(APIView):
    scopes: ClassVar = {"GET": "ingestion:read"}

    @extend_schema(operation_id="datasets_index", responses=IndexStateSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """By copy, which index it has, when it was verified, and where its keys are in a cluster of HBase, what its jobs may ask there and have asked.
        None where Lakehub loads no table."""
        return Response(IndexStateSerializer(index_states(live_dataset(name)), many=True).data)
