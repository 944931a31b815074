"use strict";
(() => {
  const one = (selector) => document.querySelector(selector);

  // j and k go to the next and the previous row, wherever the page has such links.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]")) return;
    const rel = { j: "next", k: "prev" }[event.key];
    const link = rel && one(`.paging a[rel="${rel}"]`);
    if (link) { event.preventDefault(); link.click(); }
  });

  // A slider shows one point of several; without it all of them stand below each other.
  const slider = one("input.points"), points = Array.from(document.querySelectorAll(".point"));
  if (slider) {
    const show = () => points.forEach((point) => { point.hidden = point.dataset.point !== slider.value; });
    slider.addEventListener("input", show);
    show();
  }

  // Whether the studio answers; it is said, and looked at again, until it does.
  const banner = one(".offline");
  let away = false;
  const tell = (gone) => {
    if (banner) banner.hidden = !gone;
    if (away && !gone) document.dispatchEvent(new CustomEvent("studio:back"));
    away = gone;
  };
  const look = async () => {
    try {
      const answer = await fetch("/alive", { cache: "no-store" });
      if (answer.status === 403) banner.textContent = "The studio was started anew: open the address that it printed. What you typed is still here.";
      tell(!answer.ok);
    } catch { tell(true); }
  };
  setInterval(() => { if (!document.hidden) look(); }, 1500);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
})();
