"""Help: what the terms mean."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from frontend.screens.help.glossary import read_glossary


def glossary_page(request: HttpRequest) -> HttpResponse:
    groups = read_glossary()
    context = {"groups": groups, "terms": sum(len(group.terms) for group in groups)}
    return render(request, "screens/help/templates/glossary.html", context)
