"""What script adds, and that nothing needs it: keys, theme, live parts, plots."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from incidents.models import Incident
from quality.models import Category
from tests import factories as make
from tests.e2e.conftest import findings


def test_keys_move_open_and_go(tab: Callable[..., Page], whole_fleet: None) -> None:
    page = tab("/datasets")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".is-cursor")).to_contain_text("weather")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("weather")
    page.wait_for_load_state()  # the scripts of the new page are there
    page.keyboard.press("g")
    page.keyboard.press("i")
    expect(page.get_by_role("heading", level=1)).to_have_text("4 incidents open")
    page.wait_for_load_state()
    page.keyboard.press("/")
    page.keyboard.type("jjj")
    expect(page.get_by_role("searchbox")).to_have_value("jjj")  # never while typing


def test_a_key_presses_the_button_of_the_row_under_the_cursor(tab: Callable[..., Page], whole_fleet: None) -> None:
    page = tab("/")
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.get_by_role("status")).to_contain_text("is yours")
    assert Incident.objects.get(category=Category.FRESHNESS, resolved_at=None).state == "acknowledged"


def test_ticks_bring_the_bar_and_act_together(tab: Callable[..., Page], whole_fleet: None) -> None:
    page = tab("/incidents")
    expect(page.get_by_role("toolbar")).to_be_hidden()
    page.get_by_label("Select all").check()
    expect(page.get_by_role("toolbar")).to_contain_text("4 selected")
    page.get_by_role("toolbar").get_by_role("button", name="Rerun now").click()
    expect(page.get_by_role("status").last).to_contain_text("4 incidents are asked to run again.")


def test_what_was_done_to_many_is_undone_by_a_key(tab: Callable[..., Page], whole_fleet: None) -> None:
    page = tab("/incidents")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.get_by_role("toolbar").get_by_text("Assign…").click()
    page.get_by_label("To", exact=True).fill("ines")
    assert findings(page) == []
    page.get_by_role("toolbar").get_by_role("button", name="Assign", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("is assigned.")
    assert findings(page) == []
    page.wait_for_load_state()  # the keys are there
    page.keyboard.press("z")
    expect(page.locator(".notes")).to_contain_text("is as before.")
    assert not Incident.objects.filter(resolved_at=None, assignee=None, category=Category.CONSISTENCY).exists()
    assert Incident.objects.filter(resolved_at=None, assignee=None).count() == 3


def test_what_stands_behind_the_dots_has_no_finding(tab: Callable[..., Page], whole_fleet: None) -> None:
    page = tab(f"/incidents/{Incident.objects.get(category=Category.CONSISTENCY).pk}")
    page.get_by_label("More: assign, merge, split").click()
    expect(page.get_by_label("Assign to")).to_be_visible()
    assert findings(page) == []


def test_the_theme_turns_in_place_stays_and_plots_follow(tab: Callable[..., Page], whole_fleet: None) -> None:
    number = Incident.objects.get(category=Category.CONSISTENCY).pk
    page = tab(f"/incidents/{number}", color_scheme="light")
    plot = page.locator(".js-plotly-plot .plot-container .xtick text").first
    expect(plot).to_be_visible()
    before = plot.evaluate("one => getComputedStyle(one).fill")
    for _ in range(2):  # system -> light -> dark
        page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.wait_for_function(
        "was => getComputedStyle(document.querySelector('.js-plotly-plot .xtick text')).fill !== was", arg=before
    )
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_no_page_breaks_the_policy_or_fails_in_the_console(tab: Callable[..., Page], whole_fleet: None) -> None:
    number = Incident.objects.get(category=Category.CONSISTENCY).pk
    page = tab("/")
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: messages.append(str(error)))
    for where in (
        *("/", "/datasets", "/datasets/flights", "/datasets/flights/rules", "/datasets/flights/settings"),
        *("/datasets/flights/new-test", "/coverage", "/business-metrics"),
        *("/incidents", f"/incidents/{number}", "/gate?dataset=flights"),
    ):
        page.goto(where)
        page.wait_for_load_state("networkidle")
    page.goto(f"/incidents/{number}")
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    assert messages == []


def test_an_expression_is_checked_while_it_is_typed(tab: Callable[..., Page], whole_fleet: None) -> None:
    page = tab("/datasets/flights/new-test")
    checked = page.locator("#checked")
    page.get_by_label("What must hold").press_sequentially("nulls(this.orign) / rows(this) < 5%")
    expect(checked).to_contain_text("Did you mean origin?")
    expect(page.get_by_label("What must hold")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("What must hold").fill("nulls(this.origin) / rows(this) < 5%")
    expect(checked).to_contain_text("lt(div(nulls(this.origin), rows(this)), 5%)")
    expect(page.get_by_label("What must hold")).not_to_have_attribute("aria-invalid", "true")


def test_a_test_is_written_without_script(tab: Callable[..., Page], whole_fleet: None) -> None:
    page = tab("/datasets/flights/new-test", java_script_enabled=False)
    page.get_by_label("What must hold").fill("nulls(this.origin) / rows(this) < 5%")
    page.get_by_label("Title").fill("Origins are known")
    page.get_by_role("button", name="Check it").click()
    expect(page.locator("#checked")).to_contain_text("Understood")
    page.get_by_role("button", name="Save the test").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Origins are known")


def test_a_live_part_never_moves_the_row_under_the_cursor(tab: Callable[..., Page], whole_fleet: None) -> None:
    page = tab("/sign-in")
    page.clock.install()
    page.goto("/datasets")
    page.keyboard.press("j")
    make.dataset("brand_new")
    with page.expect_response(lambda answer: "x-as-of" in answer.headers):
        page.clock.run_for(21_000)
    expect(page.get_by_role("link", name="brand_new")).to_have_count(0)
    page.evaluate("document.querySelector('.is-cursor').classList.remove('is-cursor'); document.activeElement.blur()")
    with page.expect_response(lambda answer: "x-as-of" in answer.headers):
        page.clock.run_for(21_000)
    expect(page.get_by_role("link", name="brand_new")).to_have_count(1)


def test_a_page_that_cannot_be_updated_says_how_old_it_is(tab: Callable[..., Page], whole_fleet: None) -> None:
    page = tab("/sign-in")
    page.clock.install()
    page.goto("/incidents")
    page.route("**/incidents", lambda route: route.abort())
    page.clock.run_for(95_000)
    expect(page.get_by_text("This page is")).to_contain_text("1 min old")


def test_everything_works_without_script(tab: Callable[..., Page], whole_fleet: None) -> None:
    page = tab("/datasets", java_script_enabled=False)
    page.get_by_label("Unknown").check()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".table .name")).to_have_text(["planes", "route_stats"])
    number = Incident.objects.get(category=Category.CONSISTENCY).pk
    page.goto(f"/incidents/{number}")
    page.get_by_text("Table", exact=True).click()
    expect(page.get_by_role("region", name="Rows of dc1 as a table")).to_be_visible()
    page.get_by_text("Resolve…").click()
    page.get_by_label("Reason").fill("A test lake")
    page.get_by_role("button", name="Resolve by force").click()
    expect(page.get_by_role("status")).to_contain_text("is resolved by force")
    page.get_by_role("button", name="Theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_a_phone_has_what_matters_under_the_thumb(tab: Callable[..., Page], whole_fleet: None) -> None:
    page = tab("/incidents", viewport={"width": 390, "height": 844}, has_touch=True)
    for place in page.get_by_role("navigation", name="Main").get_by_role("link").all():
        box = place.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        assert box["y"] > 700
    expect(page.locator("thead").first).to_be_hidden()  # tables are cards
