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

  // The drawn field: point at (or tab to, or tap) a node, relation or anchor to see what it touches.
  for (const field of all(document, ".field")) {
    const detail = field.querySelector(".detail");
    const idle = detail ? detail.textContent : "";
    const parts = all(field, "svg [data-nodes]");
    const rows = all(field.closest("figure") || document, "tr[data-key]");
    let held = null;
    const light = (key) => {
      const chosen = parts.find((part) => part.dataset.key === key);
      field.classList.toggle("dimmed", Boolean(chosen));
      for (const row of rows) row.classList.toggle("picked", Boolean(chosen) && row.dataset.key === key);
      if (!chosen) { if (detail) detail.textContent = idle; return; }
      const mine = new Set(chosen.dataset.nodes.split(" "));
      const isNode = chosen.classList.contains("node");
      const near = new Set(mine);
      if (isNode) {
        for (const part of parts) {
          const touched = part.dataset.nodes.split(" ");
          if (touched.some((node) => mine.has(node))) touched.forEach((node) => near.add(node));
        }
      }
      for (const part of parts) {
        const touched = part.dataset.nodes.split(" ");
        const lit = part === chosen || (part.classList.contains("node") ? near.has(touched[0]) : isNode && touched.some((node) => mine.has(node)));
        part.classList.toggle("lit", lit);
      }
      if (detail) { const text = chosen.querySelector("title"); detail.textContent = text ? text.textContent : key; }
    };
    for (const part of parts) {
      part.addEventListener("pointerenter", () => light(part.dataset.key));
      part.addEventListener("pointerleave", () => light(held));
      part.addEventListener("focus", () => light(part.dataset.key));
      part.addEventListener("blur", () => light(held));
      part.addEventListener("click", () => { held = held === part.dataset.key ? null : part.dataset.key; light(held); });
    }
    for (const row of rows) {
      row.addEventListener("pointerenter", () => light(row.dataset.key));
      row.addEventListener("pointerleave", () => light(held));
      row.addEventListener("focus", () => light(row.dataset.key));
      row.addEventListener("blur", () => light(held));
    }
    for (const box of all(field, ".controls input[data-hides]")) {
      const apply = () => field.classList.toggle(box.dataset.hides, !box.checked);
      box.addEventListener("change", apply);
      apply();
    }
  }

  // On paper there is nothing to unfold.
  window.addEventListener("beforeprint", () => all(document, "details").forEach((fold) => { fold.open = true; }));
})();
