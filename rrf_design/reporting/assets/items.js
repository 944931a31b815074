(() => {
  // Many items: buttons for the verdicts, a search box, columns that sort, and only the rows that are in sight.
  // Everything is set as text, never as markup.
  const make = (name, text, kind) => {
    const element = document.createElement(name);
    if (text !== undefined && text !== null) element.textContent = String(text);
    if (kind) element.className = kind;
    return element;
  };
  const SIGNS = { checked: "good", consistent: "plain", ambiguous: "unsure", incomplete: "unsure", contradicted: "bad" };
  const TALLEST = 12e6; // pixels: browsers cut taller elements
  const plainNumber = /^[-+\u2212]?\d[\d\u202f ]*(\.\d+)?(e[-+]?\d+)?$/i;
  const asNumber = (cell) => {
    if (typeof cell === "number") return cell;
    if (typeof cell !== "string" || !plainNumber.test(cell)) return null;
    return parseFloat(cell.replace(/[\u202f ]/g, "").replace("\u2212", "-"));
  };
  const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  for (const box of Array.from(document.querySelectorAll(".items"))) {
    const { columns, rows, details } = JSON.parse(box.querySelector("pre.data").textContent);
    const verdicts = columns.indexOf("verdict");
    const dialog = box.querySelector("dialog");
    for (const plain of Array.from(box.querySelectorAll(".fallback"))) plain.remove();

    // Words of a row, and of what lies behind it, made when first searched.
    const words = new Array(rows.length);
    const inside = (entry) => (entry || []).map((part) => part.heading + " " + (part.text !== undefined ? part.text : part.rows.flat().join(" "))).join(" ");
    const haystack = (i) => words[i] === undefined ? (words[i] = (rows[i].join(" \n") + " \n" + inside(details[i])).toLowerCase()) : words[i];

    // What is asked for.
    const tools = box.querySelector(".tools");
    const wish = { verdict: null, text: "", column: null, up: true };
    const buttons = [];
    if (verdicts >= 0) {
      const counts = new Map();
      for (const row of rows) counts.set(row[verdicts], (counts.get(row[verdicts]) || 0) + 1);
      const group = make("div", null, "choices");
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", "Verdict");
      const button = (label, value) => {
        const one = make("button", label);
        one.type = "button";
        one.setAttribute("aria-pressed", String(value === wish.verdict));
        one.addEventListener("click", () => {
          wish.verdict = value;
          buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === one)));
          choose();
        });
        buttons.push(one);
        group.append(one);
      };
      button("all " + rows.length, null);
      for (const [value, count] of counts) button((value === null ? "none" : value) + " " + count, value);
      tools.append(group);
    }
    const label = make("label", "Search ", "search");
    const search = make("input");
    search.type = "search";
    search.autocomplete = "off";
    label.append(search);
    tools.append(label);
    let waiting = 0;
    search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { wish.text = search.value.trim().toLowerCase(); choose(); }, rows.length > 5000 ? 150 : 0);
    });
    const count = make("p", "", "count");
    count.setAttribute("role", "status");
    tools.append(count);

    // The table: a head that stays, and a body of two spacers with the rows in sight between them.
    const pane = make("div", null, "pane");
    pane.tabIndex = 0;
    pane.setAttribute("role", "region");
    pane.setAttribute("aria-label", "Every item");
    const table = make("table");
    table.setAttribute("aria-rowcount", String(rows.length + 1));
    const group = make("colgroup"), head = make("tr"), body = make("tbody");
    let total = 0;
    columns.forEach((name, column) => {
      let widest = name.length + 2, numbers = true;
      const step = Math.max(1, Math.floor(rows.length / 2000));
      for (let i = 0; i < rows.length; i += step) {
        const cell = rows[i][column];
        if (cell === null || cell === "") continue;
        widest = Math.max(widest, String(cell).length);
        if (asNumber(cell) === null) numbers = false;
      }
      const col = make("col"), width = Math.min(Math.max(widest, 5), 34) + 3;
      col.style.width = width + "ch";
      total += width;
      group.append(col);
      const cell = make("th", name, "sortable" + (numbers ? " right" : ""));
      cell.scope = "col";
      cell.tabIndex = 0;
      const sort = () => {
        wish.up = wish.column === column ? !wish.up : true;
        wish.column = column;
        Array.from(head.cells).forEach((other) => other.removeAttribute("aria-sort"));
        cell.setAttribute("aria-sort", wish.up ? "ascending" : "descending");
        choose();
      };
      cell.addEventListener("click", sort);
      cell.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
      head.append(cell);
    });
    table.style.width = "max(100%, " + total + "ch)";
    const top = make("thead");
    top.append(head);
    table.append(group, top, body);
    pane.append(table);
    tools.after(pane);
    const right = Array.from(head.cells).map((cell) => cell.classList.contains("right"));

    // The rows that are wanted, in the order that is wanted.
    let chosen = [];
    const choose = () => {
      chosen = [];
      for (let i = 0; i < rows.length; i++) {
        if (wish.verdict !== null && rows[i][verdicts] !== wish.verdict) continue;
        if (wish.text && !haystack(i).includes(wish.text)) continue;
        chosen.push(i);
      }
      if (wish.column !== null) {
        const column = wish.column, sign = wish.up ? 1 : -1;
        const empty = (cell) => cell === null || cell === "";
        const keys = new Map(chosen.map((i) => [i, right[column] ? asNumber(rows[i][column]) : rows[i][column]]));
        chosen.sort((a, b) => {
          const x = keys.get(a), y = keys.get(b);
          if (empty(x) || empty(y)) return empty(x) - empty(y) || a - b; // what is empty comes last, either way
          const difference = typeof x === "number" && typeof y === "number" ? x - y : order.compare(String(x), String(y));
          return sign * difference || a - b;
        });
      }
      count.textContent = chosen.length === rows.length ? rows.length + " items" : chosen.length + " of " + rows.length + " items";
      body.replaceChildren(spacer(chosen.length * (height || 30))); // so that the pane has its height before it is measured
      pane.scrollTop = 0;
      draw();
    };
    const line = (i, place) => {
      const row = make("tr");
      row.setAttribute("aria-rowindex", String(place + 2));
      rows[i].forEach((cell, column) => {
        const made = make("td", cell, right[column] ? "right" : column === verdicts ? "verdict " + (SIGNS[cell] || "") : "");
        if (typeof cell === "string" && cell.length > 30) made.title = cell;
        row.append(made);
      });
      if (details[i]) {
        row.tabIndex = 0;
        row.className = "opens";
        row.addEventListener("click", () => open(i));
        row.addEventListener("keydown", (event) => { if (event.key === "Enter") open(i); });
      }
      return row;
    };
    const spacer = (height) => {
      const row = make("tr", null, "spacer"), cell = make("td");
      cell.colSpan = columns.length;
      row.setAttribute("aria-hidden", "true");
      cell.style.height = height + "px";
      row.append(cell);
      return row;
    };
    let height = 0;
    const draw = () => {
      if (pane.classList.contains("printed")) return; // a resize while printing
      if (!height && chosen.length) {
        body.replaceChildren(line(chosen[0], 0));
        height = body.rows[0].getBoundingClientRect().height || 30;
      }
      const all = Math.min(chosen.length * (height || 30), TALLEST);
      const visible = Math.ceil(pane.clientHeight / (height || 30)) + 1;
      const scrollable = Math.max(1, all - pane.clientHeight);
      const share = Math.min(1, pane.scrollTop / scrollable);
      const first = Math.max(0, Math.floor(share * Math.max(0, chosen.length - visible + 1)) - 10);
      const last = Math.min(chosen.length, first + visible + 20);
      const exact = chosen.length * height <= TALLEST; // else a pixel stands for several rows
      const wanted = exact || share === 1 ? first * height : pane.scrollTop - 10 * height;
      const above = Math.max(0, Math.min(wanted, all - (last - first) * height));
      const made = [];
      for (let place = first; place < last; place++) made.push(line(chosen[place], place));
      body.replaceChildren(spacer(above), ...made, spacer(Math.max(0, all - above - made.length * (height || 30))));
    };
    let asked = false;
    pane.addEventListener("scroll", () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => { asked = false; draw(); });
    });
    window.addEventListener("resize", draw);

    // Behind an item.
    const open = (i) => {
      dialog.replaceChildren();
      const close = make("button", "Close");
      close.type = "button";
      close.addEventListener("click", () => dialog.close());
      dialog.append(close, make("h3", rows[i][0]));
      const facts = make("dl");
      columns.forEach((name, column) => {
        if (column && rows[i][column] !== null && rows[i][column] !== "") facts.append(make("dt", name), make("dd", rows[i][column]));
      });
      dialog.append(facts);
      for (const part of details[i]) {
        dialog.append(make("h4", part.heading));
        if (part.text !== undefined) { dialog.append(make("pre", part.text)); continue; }
        const table = make("table"), head = make("tr"), top = make("thead"), body = make("tbody");
        part.columns.forEach((name) => head.append(make("th", name)));
        top.append(head);
        for (const row of part.rows) {
          const made = make("tr");
          row.forEach((cell) => made.append(make("td", cell)));
          body.append(made);
        }
        table.append(top, body);
        const scroll = make("div", null, "scroll");
        scroll.append(table);
        dialog.append(scroll);
      }
      dialog.showModal();
      dialog.scrollTop = 0;
    };

    // On paper: the rows that are wanted, as many as anybody would print.
    const PRINTED = 1000;
    window.addEventListener("beforeprint", () => {
      pane.classList.add("printed");
      body.replaceChildren(...chosen.slice(0, PRINTED).map(line));
      if (chosen.length > PRINTED) count.textContent += " (the first " + PRINTED + " are printed)";
    });
    window.addEventListener("afterprint", () => { pane.classList.remove("printed"); choose(); });
    choose();
  }
})();
