"""Where to report a weakness of this instance, in the form of RFC 9116."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse

_VALID_FOR = timedelta(days=180)


@login_not_required
def security_txt(request: HttpRequest) -> HttpResponse:
    """404 where LAKEHUB_SECURITY_CONTACT names nobody. An answer counts for half a year from the moment it is given."""
    contact = settings.LAKEHUB_SECURITY_CONTACT
    if not contact:
        raise Http404
    expires = (datetime.now(UTC) + _VALID_FOR).strftime("%Y-%m-%dT00:00:00Z")
    address = f"{settings.LAKEHUB_BASE_URL.rstrip('/')}{request.path}"
    text = f"Contact: {contact}\nExpires: {expires}\nCanonical: {address}\nPreferred-Languages: en\n"
    return HttpResponse(text, content_type="text/plain; charset=utf-8")
