// The browser's time zone goes into a cookie; the server writes every time in it from the next page on.
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const secure = location.protocol === "https:" ? "; secure" : "";
  if (zone) document.cookie = `zone=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;
})();
