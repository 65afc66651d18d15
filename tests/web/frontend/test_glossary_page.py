"""The glossary page, and the way to it."""

from __future__ import annotations

import re

from django.test import Client
from django.urls import reverse

from frontend.screens.help.glossary import read_glossary


def test_it_shows_each_term_at_an_address_of_its_own(page: Client) -> None:
    html = page.get(reverse("glossary")).content.decode()
    terms = {term.anchor for group in read_glossary() for term in group.terms}
    assert terms <= set(re.findall(r'<div id="([^"]+)"', html))
    assert terms <= set(re.findall(r'href="#([^"]+)"', html))


def test_names_in_backticks_are_code(page: Client) -> None:
    html = page.get(reverse("glossary")).content.decode()
    assert "<code>quality.Unit</code>" in html
    assert "<code>rows(this) / rows(upstream) &gt; 99.9%</code>" in html
    assert "`" not in html


def test_the_keyboard_help_of_a_page_leads_to_it(page: Client) -> None:
    help_dialog = page.get("/incidents").content.decode().partition('<dialog id="help"')[2]
    assert f'href="{reverse("glossary")}"' in help_dialog


def test_it_is_linked_from_the_account_for_those_who_have_no_keyboard(page: Client) -> None:
    assert f'href="{reverse("glossary")}">Glossary</a>' in page.get(reverse("account")).content.decode()
