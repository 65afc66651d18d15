// A button that fills one part of the page: <button data-part="tested"> sends its form, and the answer to the header
// X-Fragment replaces the element of that id, so that what was typed stays (also what the server never sends back).
// Without script the form is sent as any other.
(() => {
  document.addEventListener("submit", async (event) => {
    const button = event.submitter;
    const place = button?.dataset.part && document.getElementById(button.dataset.part);
    if (!place) return;
    event.preventDefault();
    const form = event.target;
    const fields = new FormData(form, button);
    const address = form.getAttribute("action"); // form.action is the button of that name, if there is one
    place.setAttribute("aria-busy", "true");
    button.disabled = true;
    try {
      const answer = await fetch(address, { method: "POST", body: fields, headers: { "X-Fragment": place.id }, redirect: "error" });
      if (!answer.ok) throw new Error(`${address} answered ${answer.status}`);
      place.innerHTML = await answer.text();
    } catch (problem) {
      console.warn("The part could not be fetched:", problem);
      place.textContent = "No answer came back. Try again.";
    } finally {
      place.removeAttribute("aria-busy");
      button.disabled = false;
    }
  });
})();
