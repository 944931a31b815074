"use strict";
(() => {
  const all = (root, selector) => Array.from(root.querySelectorAll(selector));

  // Tables: search box and sorting by any column. Text is only ever compared, never turned into markup.
  const numeric = (text) => {
    const plain = text.replace(/[\u202f\s,%]/g, "").replace(/\u2212/g, "-");
    const value = parseFloat(plain);
    return Number.isNaN(value) ? null : value;
  };
  for (const box of all(document, ".tablebox")) {
    const body = box.querySelector("tbody");
    const search = box.querySelector("input.filter");
    if (search) {
      search.addEventListener("input", () => {
        const wanted = search.value.toLowerCase();
        for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      });
    }
    all(box, "thead th").forEach((head, column) => {
      if (body.rows.length < 3) return;
      head.classList.add("sortable");
      head.tabIndex = 0;
      const sort = () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        const rows = Array.from(body.rows);
        const cell = (row) => (row.cells[column] ? row.cells[column].textContent.trim() : "");
        rows.sort((a, b) => {
          const x = numeric(cell(a)), y = numeric(cell(b));
          const order = x !== null && y !== null ? x - y : cell(a).localeCompare(cell(b));
          return up ? order : -order;
        });
        all(box, "thead th").forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        rows.forEach((row) => body.append(row));
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
    });
  }

  // On paper there is nothing to unfold.
  window.addEventListener("beforeprint", () => all(document, "details").forEach((fold) => { fold.open = true; }));
})();
