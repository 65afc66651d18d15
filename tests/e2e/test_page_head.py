"""The head of a page at every width: the title and the buttons have room beside each other, or one below the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from lakehub.accounts.models import User
from tests import factories as make

WIDTHS = range(360, 1401, 40)
OVERLAPS = """() => {
  const head = document.querySelector(".page-head");
  const range = document.createRange();
  range.selectNodeContents(head.firstElementChild);
  const texts = [...range.getClientRects()];
  const buttons = [...head.querySelectorAll(".page-head__acts :is(.btn, summary)")].map((one) => one.getBoundingClientRect());
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const beyond = buttons.filter((one) => one.left < 0 || one.right > innerWidth).length;
  const narrow = head.firstElementChild.getBoundingClientRect().width < Math.min(300, innerWidth - 40) ? 1 : 0;
  return buttons.filter((one) => texts.some((text) => meet(one, text))).length + beyond + narrow;
}"""
"""How many buttons lie over the title or beyond the page; one more where the title has no room."""


@pytest.mark.parametrize("name", ["flights", "flights-by-year-and-by-a-name-that-is-as-long-as-names-may-be"])
def test_no_button_lies_over_the_title(ines: User, tab: Callable[..., Page], name: str) -> None:
    make.dataset(name)
    page = tab(f"/datasets/{name}", viewport={"width": WIDTHS[-1], "height": 900})
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        sideways = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert (page.evaluate(OVERLAPS), max(sideways, 0)) == (0, 0), f"at {width} px"
