// A text that is checked while it is typed: <form data-check="address"> sends itself there 300 ms after the last key, and
// the answer replaces the element that the text names first in aria-describedby. Without script there is a button for it.
(() => {
  const form = document.querySelector("form[data-check]");
  const text = form?.querySelector("[data-check-text]");
  const place = text && document.getElementById(text.getAttribute("aria-describedby").split(" ")[0]);
  if (!place) return;
  let waiting = 0;
  let asking = null;

  async function check() {
    asking?.abort();
    asking = new AbortController();
    place.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(form.dataset.check, { method: "POST", body: new FormData(form), redirect: "error", signal: asking.signal });
      if (!answer.ok) throw new Error(`${form.dataset.check} answered ${answer.status}`);
      place.innerHTML = await answer.text();
      if (place.querySelector(".error")) text.setAttribute("aria-invalid", "true");
      else text.removeAttribute("aria-invalid");
    } catch (problem) {
      if (problem.name !== "AbortError") console.warn("The check failed:", problem);
    } finally {
      place.removeAttribute("aria-busy");
    }
  }

  text.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(check, 300);
  });
})();
