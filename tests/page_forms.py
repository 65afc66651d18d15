"""What a page offers: its links, and its forms as a browser would send them, one for each button."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Form:
    """`fields`: (name, value) as they are filled when the page comes, boxes ticked; `buttons`: what each adds."""

    method: str
    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)

    def body(self, button: tuple[str, str]) -> dict[str, list[str]]:
        """What is sent with the button."""
        sent: dict[str, list[str]] = {}
        for name, value in [*self.fields, button]:
            if name:
                sent.setdefault(name, []).append(value)
        return sent


class PageForms(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.forms: list[Form] = []
        self._form: Form | None = None
        self._select: str = ""
        self._options: list[tuple[str, bool]] = []
        self._textarea: tuple[str, str] | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "form":
            self._form = Form(given.get("method", "get").lower(), given.get("action", ""))
            self.forms.append(self._form)
        elif self._form is None:
            return
        elif tag == "input":
            self._input(self._form, given)
        elif tag == "select":
            self._select, self._options = given.get("name", ""), []
        elif tag == "option":
            self._options.append((given.get("value", ""), "selected" in given))
        elif tag == "textarea":
            self._textarea = (given.get("name", ""), "")
        elif tag == "button":
            self._form.buttons.append((given.get("name", ""), given.get("value", "")))

    def handle_data(self, data: str) -> None:
        if self._textarea is not None:
            self._textarea = (self._textarea[0], self._textarea[1] + data)
        elif self._options and not self._options[-1][0] and data.strip():
            self._options[-1] = (data.strip(), self._options[-1][1])

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag == "select" and self._form is not None and self._options:
            chosen = next((value for value, selected in self._options if selected), self._options[0][0])
            self._form.fields.append((self._select, chosen))
            self._options = []
        elif tag == "textarea" and self._form is not None and self._textarea is not None:
            self._form.fields.append(self._textarea)
            self._textarea = None

    @staticmethod
    def _input(form: Form, given: dict[str, str]) -> None:
        kind = given.get("type", "text")
        if kind == "radio" and "checked" not in given:
            return
        form.fields.append((given.get("name", ""), given.get("value", "on" if kind == "checkbox" else "")))
