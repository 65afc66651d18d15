// Keyboard: one table of keys. Rows are [data-row]; what a key does on a row is a link or a button
// inside it with data-key="a", so a key never does what a visible control can not.
(() => {
  const typing = (el) => el.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");
  const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility());
  let cursor = null;
  let leader = -Infinity; // when "g" was pressed

  function move(step) {
    const all = rows();
    if (!all.length) return;
    const at = cursor ? all.indexOf(cursor) : -1;
    cursor?.classList.remove("is-cursor");
    cursor = all[Math.min(all.length - 1, Math.max(0, at + step))];
    cursor.classList.add("is-cursor");
    cursor.scrollIntoView({ block: "nearest" });
    cursor.querySelector("a, summary")?.focus({ preventScroll: true });
  }

  // the row under the cursor first, then the page; only what can be seen
  function press(key) {
    const found = [cursor, document].flatMap((scope) => [...(scope?.querySelectorAll(`[data-key="${key}"]`) ?? [])]);
    const control = found.find((el) => el.checkVisibility());
    if (control?.matches("input, select, textarea")) control.focus();
    else control?.click();
  }

  const table = {
    "/": () => document.querySelector("[data-search]")?.focus(),
    "?": () => document.getElementById("help")?.showModal(),
    j: () => move(1),
    k: () => move(-1),
    x: () => cursor?.querySelector("[type=checkbox]")?.click(),
    t: () => document.dispatchEvent(new CustomEvent("lakehub:turn-theme")),
    g: () => { leader = performance.now(); },
  };
  for (const key of ["a", "r", "s", "e", "z"]) table[key] = () => press(key);

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && typing(event.target)) return event.target.blur();
    if (typing(event.target) || document.querySelector("dialog[open]")) return;
    const place = performance.now() - leader < 900 && document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
    const action = place ? () => place.click() : table[event.key];
    if (!action) return;
    event.preventDefault();
    if (event.key !== "g" || place) leader = -Infinity;
    action();
  });

  // "Select all" follows its rows; the bulk bar itself is CSS (:has(:checked)).
  document.addEventListener("change", (event) => {
    const box = event.target;
    if (box.matches("[data-all]")) for (const one of document.querySelectorAll("[data-one]")) one.checked = box.checked;
    const n = document.querySelectorAll("[data-one]:checked").length;
    for (const out of document.querySelectorAll("[data-selected]")) out.textContent = n;
  });
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog]");
    if (opener) document.getElementById(opener.dataset.dialog)?.showModal();
  });
})();
