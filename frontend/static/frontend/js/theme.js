// Theme: system -> light -> dark -> system. The server wrote data-theme from the cookie; this turns it in place.
(() => {
  const root = document.documentElement;
  const next = { system: "light", light: "dark", dark: "system" };
  const words = { system: "follows the system", light: "light", dark: "dark" };
  const now = () => root.dataset.theme || "system";

  function turn() {
    const theme = next[now()];
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `theme=${theme}; path=/; max-age=31536000; samesite=lax${secure}`;
    for (const button of document.querySelectorAll("[data-theme-toggle]")) {
      button.setAttribute("aria-label", `Theme: ${words[theme]}. Change`);
      button.title = `Theme: ${words[theme]}`;
    }
    document.dispatchEvent(new CustomEvent("lakehub:theme")); // plots redraw in the new colours
  }

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    event.preventDefault();
    turn();
  });
  document.addEventListener("lakehub:turn-theme", turn);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (now() === "system") document.dispatchEvent(new CustomEvent("lakehub:theme"));
  });
})();
