"""Backtests over REST."""

from __future__ import annotations

from typing import ClassVar, cast

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require
from lakehub.catalog.datasets.lookup import live_dataset
from quality.api.backtest_serializers import BacktestInputSerializer, BacktestSerializer
from quality.backtest.run import run_backtest, single_backtest_of


class BacktestRun(APIView):
    scopes: ClassVar = {"POST": "quality:run"}

    @extend_schema(request=BacktestInputSerializer, responses=BacktestSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Tries a test on past partitions, one at a time. Nobody is alarmed, and nothing is stored of it."""
        dataset = live_dataset(name)
        require(request.user, "rerun", dataset.team)
        serializer = BacktestInputSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        with single_backtest_of(request.user.get_username()):
            tried = run_backtest(
                dataset, **serializer.validated_data, author=cast("User", request.user), now=wiring.clock.now()
            )
        return Response(BacktestSerializer(tried).data)
