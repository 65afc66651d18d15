// Live fragments: <section id="open" data-live="15"> asks its own page every 15 s for that part only (header X-Fragment)
// and takes the answer when nobody is on it: a fragment with the cursor, the focus, the pointer, a tick or something
// opened in it waits. Where the server is silent, a note says how old the page is.
(() => {
  const stale = document.querySelector("[data-stale]");
  let since = Date.now();

  const busy = (part) =>
    part.matches(":hover, :focus-within") ||
    part.querySelector(".is-cursor, :checked, details[open]") ||
    document.querySelector("dialog[open]");

  async function fresh(part) {
    const url = location.pathname + location.search;
    const answer = await fetch(url, { headers: { "X-Fragment": part.id }, redirect: "error" });
    if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
    const html = await answer.text();
    return { html, asOf: answer.headers.get("X-As-Of") };
  }

  async function update(part) {
    if (document.hidden) return;
    try {
      const { html, asOf } = await fresh(part);
      since = Date.now();
      if (stale) stale.hidden = true;
      if (busy(part)) return; // the next round is soon enough
      part.innerHTML = html;
      part.hidden = !html.trim(); // a part with nothing to say takes no place
      for (const out of document.querySelectorAll("[data-as-of]")) out.textContent = asOf;
    } catch (problem) {
      console.warn("A live update failed:", problem);
      const minutes = Math.floor((Date.now() - since) / 60000);
      if (!stale || minutes < 1) return;
      stale.querySelector("[data-age]").textContent = `${minutes} min`;
      stale.hidden = false;
    }
  }

  for (const part of document.querySelectorAll("[data-live]")) {
    setInterval(() => update(part), Number(part.dataset.live) * 1000);
  }
})();
