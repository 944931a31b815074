// The drawn field: what touches what, zoom and pan, and for a large field the neighbourhood of any node.
// All text enters as text nodes; nothing here makes markup from data.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const EDGE = 120, APART = 62, MARGIN = 46, RADIUS = 13, MOST_EDGES = 600, LABELLED = 24, COLOURS = 7;
  const STATES = [["owned", ""], ["bought", "bought"], ["on sale", "sale"], ["waits for a node that is not asked", "sale"]];
  const all = (root, selector) => Array.from(root.querySelectorAll(selector));
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const fixed = (value) => value.toFixed(1);

  const number = (value, digits = 5) => String(Number(value.toPrecision(digits))).replace("-", "\u2212");
  const count = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const percent = (share, digits) => `${(100 * share).toFixed(digits)}%`;

  const make = (name, attributes, ...children) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  // Graph distances within a set of nodes; parts that nothing connects are put a little beyond the farthest.
  const distances = (size, links) => {
    const near = Array.from({ length: size }, () => []);
    for (const [a, b] of links) { near[a].push(b); near[b].push(a); }
    const far = near.map((_, start) => {
      const steps = new Array(size).fill(0);
      const queue = [start];
      const seen = new Set(queue);
      for (let i = 0; i < queue.length; i += 1) {
        for (const other of near[queue[i]]) {
          if (!seen.has(other)) { seen.add(other); steps[other] = steps[queue[i]] + 1; queue.push(other); }
        }
      }
      return steps;
    });
    const most = Math.max(1, ...far.map((row) => Math.max(...row)));
    return far.map((row, i) => row.map((step, j) => (i !== j && step === 0 ? most + 1 : step)));
  };

  // Stress majorisation from a circle, then pushing apart what stands too close. The same field always looks the same.
  const place = (size, links) => {
    let spots = Array.from({ length: size }, (_, i) => [Math.cos((2 * Math.PI * i) / size), Math.sin((2 * Math.PI * i) / size)]);
    if (size === 1) return [[0, 0]];
    const wanted = distances(size, links);
    spots = spots.map(([x, y]) => [x * size * 0.3, y * size * 0.3]);
    for (let round = 0; round < 120; round += 1) {
      spots = spots.map(([x, y], i) => {
        let sx = 0, sy = 0, total = 0;
        for (let j = 0; j < size; j += 1) {
          if (j === i) continue;
          const dx = x - spots[j][0], dy = y - spots[j][1];
          const length = Math.hypot(dx, dy) || 1e-6;
          const weight = 1 / (wanted[i][j] * wanted[i][j]);
          sx += weight * (spots[j][0] + (wanted[i][j] * dx) / length);
          sy += weight * (spots[j][1] + (wanted[i][j] * dy) / length);
          total += weight;
        }
        return [sx / total, sy / total];
      });
    }
    spots = spots.map(([x, y]) => [x * EDGE, y * EDGE]);
    for (let round = 0; round < 60; round += 1) {
      let worst = 0;
      const push = spots.map(() => [0, 0]);
      for (let i = 0; i < size; i += 1) {
        for (let j = 0; j < i; j += 1) {
          const dx = spots[i][0] - spots[j][0], dy = spots[i][1] - spots[j][1];
          const length = Math.hypot(dx, dy) || 1e-3;
          const close = APART - length;
          if (close <= 0) continue;
          worst = Math.max(worst, close);
          push[i][0] += (0.5 * close * dx) / length; push[i][1] += (0.5 * close * dy) / length;
          push[j][0] -= (0.5 * close * dx) / length; push[j][1] -= (0.5 * close * dy) / length;
        }
      }
      if (worst < 1) break;
      spots = spots.map(([x, y], i) => [x + push[i][0], y + push[i][1]]);
    }
    return spots;
  };

  // Where anchors stand around a node: in the widest gaps between its relations, its name below and its share to the right.
  const freeAngles = (spot, others, many) => {
    const taken = others.map(([x, y]) => Math.atan2(y - spot[1], x - spot[0]));
    taken.push(Math.PI / 2 - 0.7, Math.PI / 2, Math.PI / 2 + 0.7, -Math.PI / 5);
    const chosen = [];
    for (let i = 0; i < many; i += 1) {
      const ring = [...taken, ...chosen].sort((a, b) => a - b);
      let best = 0, gap = -1;
      ring.forEach((angle, at) => {
        const next = at + 1 < ring.length ? ring[at + 1] : ring[0] + 2 * Math.PI;
        if (next - angle > gap + 1e-6) { best = angle; gap = next - angle; }
      });
      chosen.push(best + gap / 2);
    }
    return chosen;
  };

  // A large field's data, as reporting/explorer.py writes it.
  class Field {
    constructor(data) {
      this.data = data;
      this.name = new Map(data.nodes);
      this.block = new Map(data.blocks.map((block) => [block[0], block]));
      this.around = new Map();
      this.tied = new Map();
      for (const block of data.blocks) {
        for (const node of block[2]) {
          if (!this.around.has(node)) this.around.set(node, []);
          this.around.get(node).push(block);
          if (block[5] < 2) this.tied.set(node, (this.tied.get(node) || 0) + 1);
        }
      }
      this.wrong = new Set(data.wrong);
      this.witness = Object.keys(data.shares).length > 0;
    }

    neighbourhood(centres, most) {
      const found = new Set(centres.slice(0, most));
      for (const node of found) { // a Set hands out what is added while it is walked through: breadth first
        for (const block of this.around.get(node) || []) {
          for (const other of block[2]) if (found.size < most) found.add(other);
        }
      }
      const inside = this.data.blocks.filter((block) => block[2].every((node) => found.has(node)));
      const order = [1, 0, 3, 2];
      inside.sort((a, b) => order[a[5]] - order[b[5]] || a[0] - b[0]);
      return { nodes: [...found].sort((a, b) => a - b), blocks: inside.slice(0, MOST_EDGES).sort((a, b) => a[0] - b[0]) };
    }

    energy(j) { return this.witness ? (this.data.energies[j] ? number(this.data.energies[j], 4) : "blind") : ""; }
    state(i) { return i in this.data.costs ? `not asked, costs ${number(this.data.costs[i])}` : "asked"; }

    nodeWords(i) {
      const words = [`node ${this.name.get(i)}`, `dimension ${this.data.dims[i] || 1}`, this.state(i)];
      if (i in this.data.shares) words.push(`${percent(this.data.shares[i], 1)} of the witness, along (${this.data.along[i].join(", ")})`);
      if (this.wrong.has(i)) words.push("its response was wrong");
      const remark = this.data.remarks[this.name.get(i)];
      return [...words, ...(remark ? [remark] : [])].join("; ");
    }

    blockWords([j, id, nodes, map, family, state, cost, several]) {
      const word = this.data.words;
      const names = nodes.map((i) => this.name.get(i));
      const words = map < 0
        ? [`anchor ${word[id]} on ${names.slice(0, 6).join(", ")}${names.length > 6 ? " …" : ""}`]
        : [`relation ${word[id]}`, several >= 0 ? word[several] : `${names[1] || names[0]} = ${word[map]} of ${names[0]}`];
      if (map >= 0 && family >= 0) words.push(`family ${word[family]}`);
      words.push(STATES[state][0] + (cost === null ? "" : ` for ${number(cost)}`));
      if (this.data.remarks[word[id]]) words.push(this.data.remarks[word[id]]);
      if (this.witness) words.push(`energy on the witness: ${this.energy(j)}`);
      return words.join("; ");
    }

    draw({ nodes, blocks }, centre) {
      const seat = new Map(nodes.map((node, i) => [node, i]));
      const links = blocks.flatMap((block) => block[2].slice(1).map((node) => [seat.get(block[2][0]), seat.get(node)]));
      const spots = place(nodes.length, links.filter(([a, b]) => a !== b));
      const low = [0, 1].map((c) => Math.min(...spots.map((spot) => spot[c])));
      const high = [0, 1].map((c) => Math.max(...spots.map((spot) => spot[c])));
      const width = Math.max(330, high[0] - low[0] + 2 * MARGIN), height = high[1] - low[1] + 2 * MARGIN;
      const shift = [(width - (high[0] - low[0])) / 2 - low[0], MARGIN - low[1]];
      const at = new Map(nodes.map((node, i) => [node, [spots[i][0] + shift[0], spots[i][1] + shift[1]]]));
      const near = new Map(nodes.map((node) => [node, new Set()]));
      for (const block of blocks) for (const node of block[2]) for (const other of block[2]) if (other !== node) near.get(node).add(other);
      const labelled = blocks.filter((block) => block[3] >= 0).length <= LABELLED;
      const pairs = new Map(), single = new Map(), parts = [];
      const pair = (block) => [...block[2]].sort((a, b) => a - b).join(" ");
      const between = (block) => block[3] >= 0 && block[7] < 0; // a relation of two nodes
      for (const block of blocks) if (between(block)) pairs.set(pair(block), [0, ((pairs.get(pair(block)) || [0, -17])[1]) + 17]);
      for (const block of blocks) {
        if (between(block)) {
          const turn = pairs.get(pair(block));
          parts.push(this.relation(block, at, turn[0] * 34 - turn[1], labelled));
          turn[0] += 1;
        } else if (block[3] >= 0) {
          parts.push(this.several(block, block[2].map((node) => at.get(node))));
        } else if (block[2].length > 1) {
          parts.push(this.anchor(block, block[2].map((node) => at.get(node)), null));
        } else {
          single.set(block[2][0], [...(single.get(block[2][0]) || []), block]);
        }
      }
      for (const [node, anchors] of single) {
        const angles = freeAngles(at.get(node), [...near.get(node)].map((other) => at.get(other)), anchors.length);
        anchors.forEach((block, i) => parts.push(this.anchor(block, [at.get(node)], angles[i])));
      }
      parts.push(...nodes.map((node) => this.node(node, at.get(node), node === centre)));
      return make("svg", {
        viewBox: `0 0 ${width.toFixed(0)} ${height.toFixed(0)}`, width: width.toFixed(0), height: height.toFixed(0), role: "group", tabindex: "0",
        "aria-label": `Drawing of ${nodes.length} nodes around ${this.name.get(centre)}`,
      }, ...parts);
    }

    relation(block, at, bend, labelled) {
      const [j, , nodes, map, family, state] = block;
      const tail = nodes[0], head = nodes.length > 1 ? nodes[1] : nodes[0];
      const [x1, y1] = at.get(tail), [x2, y2] = at.get(head);
      let path, middle, angle;
      if (tail === head) {
        path = `M${fixed(x1 - 6)},${fixed(y1)} C${fixed(x1 - 40)},${fixed(y1 - 60)} ${fixed(x1 + 40)},${fixed(y1 - 60)} ${fixed(x1 + 6)},${fixed(y1)}`;
        middle = [x1, y1 - 45]; angle = 0;
      } else {
        const length = Math.hypot(x2 - x1, y2 - y1), ux = (x2 - x1) / length, uy = (y2 - y1) / length;
        const side = tail > head ? -bend : bend; // parallel relations bend to the same side whichever way they point
        const cx = (x1 + x2) / 2 - uy * side, cy = (y1 + y2) / 2 + ux * side;
        path = `M${fixed(x1)},${fixed(y1)} Q${fixed(cx)},${fixed(cy)} ${fixed(x2)},${fixed(y2)}`;
        middle = [(x1 + x2) / 4 + cx / 2 + ux * 5, (y1 + y2) / 4 + cy / 2 + uy * 5];
        angle = (Math.atan2(uy, ux) * 180) / Math.PI;
      }
      const line = STATES[state][1];
      const colour = this.colour(map, family);
      const parts = [
        make("title", {}, this.blockWords(block)),
        make("path", { d: path, class: `edge ${line}` }),
        make("path", { d: path, stroke: "transparent", "stroke-width": 14, fill: "none" }),
        make("path", { d: "M-6,-4.5 L6,0 L-6,4.5 Z", class: "arrow", transform: `translate(${fixed(middle[0])} ${fixed(middle[1])}) rotate(${fixed(angle)})` }),
      ];
      const word = this.data.words[map];
      if (labelled && word.startsWith("×")) {
        const turned = (angle * Math.PI) / 180, down = Math.cos(turned) >= 0 ? 1 : -1;
        const nx = -down * Math.sin(turned), ny = down * Math.cos(turned);
        const side = Math.abs(nx) < 0.4 ? "middle" : nx > 0 ? "start" : "end";
        parts.push(make("text", { x: middle[0] + 11 * nx, y: middle[1] + 11 * ny + 5, "text-anchor": side, class: "name soft" }, word));
      }
      return make("g", { class: `c${colour} ${line}`, "data-nodes": nodes.join(" "), "data-key": `b${j}`, tabindex: "0" }, ...parts);
    }

    colour(map, family) {
      const name = this.data.words[family >= 0 ? family : map];
      return this.data.families.includes(name) ? this.data.families.indexOf(name) : COLOURS;
    }

    // A relation among several nodes: lines from each to a round mark between them.
    several(block, spots) {
      const line = STATES[block[5]][1];
      const x = spots.reduce((sum, spot) => sum + spot[0], 0) / spots.length;
      const y = spots.reduce((sum, spot) => sum + spot[1], 0) / spots.length - (spots.length > 1 ? 0 : RADIUS + 20);
      return make("g", { class: `c${this.colour(block[3], block[4])} ${line}`, "data-nodes": block[2].join(" "), "data-key": `b${block[0]}`, tabindex: "0" },
        make("title", {}, this.blockWords(block)),
        ...spots.map((spot) => make("path", { d: `M${fixed(spot[0])},${fixed(spot[1])} L${fixed(x)},${fixed(y)}`, class: `edge ${line}` })),
        make("circle", { cx: x, cy: y, r: 6, class: "arrow" }));
    }

    anchor(block, spots, angle) {
      const line = STATES[block[5]][1];
      let x = spots.reduce((sum, spot) => sum + spot[0], 0) / spots.length, y = spots.reduce((sum, spot) => sum + spot[1], 0) / spots.length;
      if (angle !== null) { x += (RADIUS + 20) * Math.cos(angle); y += (RADIUS + 20) * Math.sin(angle); }
      return make("g", { class: `anchor ${line}`, "data-nodes": block[2].join(" "), "data-key": `b${block[0]}`, tabindex: "0" },
        make("title", {}, this.blockWords(block)),
        ...spots.map((spot) => make("line", { x1: spot[0], y1: spot[1], x2: x, y2: y })),
        make("rect", { x: x - 6, y: y - 6, width: 12, height: 12 }));
    }

    node(i, [x, y], centre) {
      const share = this.data.shares[i], name = this.name.get(i);
      const state = ["node", ...(i in this.data.costs ? ["unasked"] : []), ...(share === undefined ? [] : ["witness"]), ...(this.wrong.has(i) ? ["wrong"] : []), ...(centre ? ["centre"] : [])];
      const parts = [make("title", {}, this.nodeWords(i)), make("circle", { cx: x, cy: y, r: RADIUS })];
      if (this.wrong.has(i)) parts.push(make("path", { d: `M${fixed(x - 6)},${fixed(y - 6)} l12,12 m0,-12 l-12,12` }));
      const [given, became] = this.data.values[i] || ["", ""];
      const lines = [[name, "name"], [given, this.wrong.has(i) ? "given crossed" : "given"], [became && became !== given ? `→ ${became}` : "", "became"]];
      lines.filter(([text]) => text).forEach(([text, kind], row) => {
        parts.push(make("text", { x, y: y + RADIUS + 16 * (row + 1), "text-anchor": "middle", class: kind }, text.length <= 18 ? text : `${text.slice(0, 17)}…`));
      });
      if (share !== undefined) parts.push(make("text", { x: x + RADIUS + 5, y: y - RADIUS + 2, class: "share" }, percent(share, 0)));
      return make("g", { class: state.join(" "), "data-nodes": i, "data-key": `n${i}`, "data-name": name, tabindex: "0" }, ...parts);
    }

    nodeRow(i) {
      const share = this.data.shares[i];
      const cells = [this.name.get(i), count(this.data.dims[i] || 1), this.state(i), count(this.tied.get(i) || 0), share === undefined ? "" : percent(share, 1)];
      return [`n${i}`, this.wrong.size ? [...cells, this.wrong.has(i) ? "wrong" : ""] : cells];
    }

    blockRow([j, id, nodes, map, family, state, cost, several]) {
      const names = nodes.map((i) => this.name.get(i)), word = this.data.words;
      const listed = (some) => some.slice(0, 6).join(", ") + (some.length > 6 && several >= 0 ? ", …" : "");
      const whole = map < 0 || (several >= 0 && word[map] === "rows");
      return [`b${j}`, [
        word[id], map < 0 ? "anchor" : "relation", whole ? listed(names) : `${listed(names.slice(0, -1)) || names[0]} → ${names[names.length - 1]}`,
        map < 0 ? "anchor" : word[map], family < 0 ? "" : word[family], STATES[state][0], cost === null ? "" : number(cost), this.energy(j),
      ]];
    }
  }

  // New rows under the old headings: search and sorting go on working.
  const fill = (table, rows) => {
    const heads = all(table, "thead th");
    table.tBodies[0].replaceChildren(...rows.map(([key, cells]) => {
      const row = document.createElement("tr");
      row.dataset.key = key;
      row.tabIndex = 0;
      cells.forEach((text, i) => { const cell = row.insertCell(); cell.textContent = text; cell.className = heads[i].className.includes("right") ? "right" : ""; });
      return row;
    }));
  };

  const explore = (box) => {
    const figure = box.closest("figure");
    const frame = box.querySelector(".drawing"), detail = box.querySelector(".detail"), caption = figure.querySelector("figcaption");
    const source = box.querySelector("pre.data");
    const act = (name) => box.querySelector(`[data-act="${name}"]`);
    let idle = detail.textContent;
    const first = { idle, svg: frame.querySelector("svg"), caption: caption.textContent, tables: null };
    let svg = first.svg, held = null, large = null, shown = null;
    let base = null, view = null; // the drawing's own size, and the part of it that is seen: its middle and how much it is enlarged

    // What touches what.
    const parts = () => all(svg, "[data-nodes]");
    const light = (key) => {
      const drawn = parts();
      const chosen = drawn.find((part) => part.dataset.key === key);
      box.classList.toggle("dimmed", Boolean(chosen));
      for (const row of all(figure, "tr[data-key]")) row.classList.toggle("picked", Boolean(chosen) && row.dataset.key === key);
      if (!chosen) { detail.textContent = idle; return; }
      const mine = new Set(chosen.dataset.nodes.split(" ")), isNode = chosen.classList.contains("node"), near = new Set(mine);
      const touched = drawn.map((part) => part.dataset.nodes.split(" "));
      if (isNode) for (const nodes of touched) if (nodes.some((node) => mine.has(node))) nodes.forEach((node) => near.add(node));
      drawn.forEach((part, i) => {
        const lit = part === chosen || (part.classList.contains("node") ? near.has(touched[i][0]) : isNode && touched[i].some((node) => mine.has(node)));
        part.classList.toggle("lit", lit);
      });
      detail.textContent = chosen.querySelector("title").textContent;
    };
    const hold = (key) => {
      held = key;
      light(key);
      if (act("around")) act("around").disabled = !(key && key.startsWith("n"));
    };
    const keyed = (target) => { const part = target.closest && target.closest("[data-key]"); return part ? part.dataset.key : null; };
    for (const area of [frame, figure.querySelector(".beside")]) {
      area.addEventListener("pointerover", (event) => { if (keyed(event.target)) light(keyed(event.target)); });
      area.addEventListener("pointerout", (event) => { if (keyed(event.target)) light(held); });
      area.addEventListener("focusin", (event) => { if (keyed(event.target)) { light(keyed(event.target)); if (area === frame) reveal(event.target); } });
      area.addEventListener("focusout", () => light(held));
    }
    frame.addEventListener("click", (event) => {
      const key = keyed(event.target);
      if (key && !dragged) hold(held === key ? null : key);
    });

    // Zoom and pan by changing what part of the drawing the frame shows.
    const show = () => {
      view.scale = clamp(view.scale, 1, 12);
      view.x = view.scale === 1 ? base.w / 2 : clamp(view.x, 0, base.w);
      view.y = view.scale === 1 ? base.h / 2 : clamp(view.y, 0, base.h);
      const w = base.w / view.scale, h = base.h / view.scale;
      svg.setAttribute("viewBox", `${fixed(view.x - w / 2)} ${fixed(view.y - h / 2)} ${fixed(w)} ${fixed(h)}`);
      svg.classList.toggle("zoomed", view.scale > 1);
      act("out").disabled = act("whole").disabled = view.scale === 1;
      act("in").disabled = view.scale === 12;
    };
    const zoom = (factor, at) => {
      const before = view.scale;
      view.scale = clamp(before * factor, 1, 12);
      if (at) { view.x = at[0] + ((view.x - at[0]) * before) / view.scale; view.y = at[1] + ((view.y - at[1]) * before) / view.scale; }
      show();
    };
    const whole = () => { view = { x: base.w / 2, y: base.h / 2, scale: 1 }; show(); };
    const spot = (event) => { // where an event is, in the drawing's units
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      return [point.x, point.y];
    };
    const middle = (part) => { const b = part.getBBox(); return [b.x + b.width / 2, b.y + b.height / 2]; };
    const reveal = (target) => {
      const part = target.closest("[data-nodes]");
      if (!part || view.scale === 1) return;
      const [x, y] = middle(part), w = base.w / view.scale, h = base.h / view.scale;
      if (Math.abs(x - view.x) > w / 2 || Math.abs(y - view.y) > h / 2) { view.x = x; view.y = y; show(); }
    };
    // No text over another one: of two that touch, the one that is drawn later is left out; its node still says it.
    const uncrowd = () => {
      const kept = [];
      for (const text of all(svg, "text")) {
        const here = text.getBoundingClientRect();
        const hit = kept.some((one) => here.left < one.right - 1 && one.left < here.right - 1 && here.top < one.bottom - 1.5 && one.top < here.bottom - 1.5);
        text.classList.toggle("crowded", hit);
        if (!hit) kept.push(here);
      }
    };
    const settle = () => { // on a narrow screen begin with the witness at a size that can be read
      const own = svg.getAttribute("viewBox").split(" ").map(Number);
      base = { w: own[2], h: own[3] };
      view = { x: base.w / 2, y: base.h / 2, scale: 1 };
      const seen = svg.getBoundingClientRect().width / base.w;
      const marked = all(svg, ".node.centre, .node.witness").map(middle);
      if (seen > 0 && seen < 0.8 && window.innerWidth < 700) {
        view.scale = 0.8 / seen;
        if (marked.length) { view.x = marked[0][0]; view.y = marked[0][1]; }
      }
      show();
      uncrowd();
    };

    const pointers = new Map();
    let dragged = false;
    frame.addEventListener("pointerdown", (event) => { pointers.set(event.pointerId, event); dragged = false; });
    frame.addEventListener("pointermove", (event) => {
      const old = pointers.get(event.pointerId);
      if (!old) return;
      const others = [...pointers.values()].filter((pointer) => pointer.pointerId !== event.pointerId);
      const unit = 1 / svg.getScreenCTM().a;
      if (others.length === 1) {
        const apart = (p) => Math.hypot(p.clientX - others[0].clientX, p.clientY - others[0].clientY) || 1;
        zoom(apart(event) / apart(old), spot(others[0]));
      } else if (view.scale > 1) {
        if (!dragged && Math.hypot(event.clientX - old.clientX, event.clientY - old.clientY) < 4) return;
        view.x -= (event.clientX - old.clientX) * unit;
        view.y -= (event.clientY - old.clientY) * unit;
        show();
      } else return;
      dragged = true;
      pointers.set(event.pointerId, event);
    });
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) frame.addEventListener(end, (event) => pointers.delete(event.pointerId));
    frame.addEventListener("wheel", (event) => { // with Ctrl (or a pinch on a touchpad); else the page scrolls
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 300), spot(event));
    }, { passive: false });
    frame.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = 0.15 / view.scale;
      const keys = {
        "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), 0: whole,
        ArrowLeft: () => { view.x -= step * base.w; show(); }, ArrowRight: () => { view.x += step * base.w; show(); },
        ArrowUp: () => { view.y -= step * base.h; show(); }, ArrowDown: () => { view.y += step * base.h; show(); },
        Enter: () => { const key = keyed(event.target); if (key && key.startsWith("n") && source) go(Number(key.slice(1))); else if (key) hold(held === key ? null : key); },
        Escape: () => hold(null),
      };
      if (!(event.key in keys) || (event.key.startsWith("Arrow") && view.scale === 1)) return;
      event.preventDefault();
      keys[event.key]();
    });
    act("in").addEventListener("click", () => zoom(1.4));
    act("out").addEventListener("click", () => zoom(1 / 1.4));
    act("whole").addEventListener("click", whole);
    caption.tabIndex = -1;
    act("skip").addEventListener("click", () => caption.focus());

    // Any node's neighbourhood, where the page carries more than is drawn.
    const whole_field = () => { if (large === null) large = new Field(JSON.parse(source.textContent)); return large; };
    const swap = (drawing, words) => {
      if (first.tables === null) first.tables = all(figure, "table.follows").map((table) => Array.from(table.tBodies[0].rows));
      svg.replaceWith(drawing);
      svg = drawing;
      caption.textContent = words;
      settle();
    };
    const counts = () => all(figure, "table.follows").forEach((table) => {
      const fold = table.closest("details"), many = fold && fold.querySelector(".count");
      if (many) many.textContent = count(table.tBodies[0].rows.length);
    });
    const go = (node) => {
      if (!source) {
        const part = parts().find((each) => each.dataset.key === `n${node}`);
        [view.x, view.y] = middle(part);
        view.scale = Math.max(view.scale, 2);
        show();
        hold(`n${node}`);
        return;
      }
      const known = whole_field();
      const near = known.neighbourhood([node], Number(act("size").value));
      shown = node;
      swap(known.draw(near, node), `The neighbourhood of ${known.name.get(node)}: ${near.nodes.length} of ${count(known.data.all)} nodes and ${near.blocks.length} of ${count(known.data.allBlocks)} relations and anchors.`);
      const tables = all(figure, "table.follows");
      const byEnergy = (a, b) => (known.data.energies[b[0]] || 0) - (known.data.energies[a[0]] || 0);
      fill(tables[0], near.nodes.map((i) => known.nodeRow(i)));
      fill(tables[1], [...near.blocks].sort(byEnergy).map((block) => known.blockRow(block)));
      counts();
      idle = known.nodeWords(node);
      hold(null);
    };
    const back = () => {
      idle = first.idle;
      hold(null);
      if (svg === first.svg) { whole(); return; }
      shown = null;
      swap(first.svg, first.caption);
      all(figure, "table.follows").forEach((table, i) => table.tBodies[0].replaceChildren(...first.tables[i]));
      counts();
    };
    const names = () => (source ? whole_field().data.nodes : parts().filter((part) => part.dataset.name).map((part) => [Number(part.dataset.key.slice(1)), part.dataset.name]));
    const matches = (text, most) => {
      const wanted = text.trim().toLowerCase();
      if (!wanted) return [];
      const hits = names().filter(([, name]) => name.toLowerCase().includes(wanted));
      const rank = (name) => (name.toLowerCase() === wanted ? 0 : name.toLowerCase().startsWith(wanted) ? 1 : 2);
      return hits.sort((a, b) => rank(a[1]) - rank(b[1]) || a[1].length - b[1].length).slice(0, most);
    };
    const search = act("find"), list = box.querySelector("datalist");
    list.id = `names-${all(document, ".field").indexOf(box)}`;
    search.setAttribute("list", list.id);
    search.addEventListener("input", () => list.replaceChildren(...matches(search.value, 20).map(([, name]) => { const option = document.createElement("option"); option.value = name; return option; })));
    const find = () => {
      const [hit] = matches(search.value, 1);
      if (hit) go(hit[0]);
      else if (search.value.trim()) detail.textContent = `No node has “${search.value.trim()}” in its name.`;
    };
    search.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); find(); } });
    act("go").addEventListener("click", find);
    if (source) {
      act("around").addEventListener("click", () => { if (held) go(Number(held.slice(1))); });
      act("size").addEventListener("change", () => { if (shown !== null) go(shown); else { const marked = svg.querySelector(".node.witness, .node"); go(Number(marked.dataset.nodes)); } });
      act("back").addEventListener("click", back);
      frame.addEventListener("dblclick", (event) => { const key = keyed(event.target); if (key && key.startsWith("n")) go(Number(key.slice(1))); });
    }
    for (const tick of all(box, ".controls input[data-hides]")) {
      const hide = () => box.classList.toggle(tick.dataset.hides, !tick.checked);
      tick.addEventListener("change", hide);
      hide();
    }
    box.classList.add("live");
    settle();
    const fold = box.closest("details"); // a drawing that was folded away had no size to settle in
    if (fold) fold.addEventListener("toggle", () => { if (fold.open && view.scale === 1) settle(); });
    let kept = null;
    window.addEventListener("beforeprint", () => { kept = { ...view }; whole(); });
    window.addEventListener("afterprint", () => { if (kept) { view = kept; show(); kept = null; } });
  };
  for (const box of all(document, ".field")) explore(box);
})();
