"use strict";
// One question after the other. A label is sent with a stamp of its own until the studio says that it is saved, so it is there once
// or not at all, and the next question comes only then. Texts are set as text, never as markup.
(() => {
  const main = document.querySelector("main.review[data-of]");
  if (!main) return;
  const find = (selector) => main.querySelector(selector);
  const said = find(".said"), box = find(".asked"), form = find("form"), input = find('input[name="value"]');
  const bar = find("progress"), about = find(".about"), answers = find(".answers");
  const random = () => Array.from(crypto.getRandomValues(new Uint8Array(9)), (b) => b.toString(16).padStart(2, "0")).join("");
  const who = sessionStorage.getItem("studio-who") || random();
  sessionStorage.setItem("studio-who", who);
  let now = null, busy = false, waiting = null;

  const tell = (text, bad = false) => { said.textContent = text; said.classList.toggle("bad", bad); };
  const add = (parent, name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    parent.append(made);
    return made;
  };
  const cells = (parent, entries) => {
    const list = add(parent, "dl", undefined, "cells");
    for (const [name, text] of entries) { add(list, "dt", name); add(add(list, "dd"), "span", text, "text"); }
  };

  const show = (answer) => {
    now = answer.question;
    const done = answer.labels, all = answer.labels + answer.open;
    bar.max = Math.max(1, all);
    bar.value = done;
    find(".twice").textContent = answer.twice ? ` Of ${answer.twice} rows labelled twice, ${answer.same} have the same label.` : "";
    box.hidden = now === null;
    if (now === null) {
      const left = answer.open ? `${answer.open} with other people: they come here when they are let go.` : "A verb that waits asks on by itself; another one reads the labels when it is repeated.";
      tell(`${answer.open ? "Nothing for you now." : "Everything that was asked is answered."} ${done} labels, ${answer.own} of them yours. ${left}`);
      clearTimeout(waiting);
      waiting = setTimeout(() => act("next"), 3000);
      return;
    }
    const before = { saved: "Saved. ", taken: "Somebody else had answered that one; theirs stays. ", later: "Later. ", undone: "Taken back. " }[answer.told] || (answer.told ? `${answer.told}. ` : "");
    tell(`${now.trouble ? `A label of this row could not be read (${now.trouble}). ` : before}${answer.open} to look at, ${done} labels, ${answer.own} of them yours.`);
    find(".question").textContent = now.question || `What is right of row ${now.id}?`;
    about.replaceChildren();
    add(about, "p", `Row ${now.id}${now.part ? `, ${now.part}` : ""}`, "soft");
    if (now.text) add(about, "p", now.text, "text");
    if (now.own && Object.keys(now.own).length) cells(about, Object.entries(now.own));
    else if (now.prompt) add(about, "p", now.prompt, "text");
    if (now.told && now.told.gain_per_cost) add(about, "p", `Worth: ${now.told.gain_per_cost} rows decided per unit of cost${now.told.rank ? `; number ${now.told.rank} in the list` : ""}. It fixes this row and proves nothing.`, "soft");
    if (now.told && Object.keys(now.told).length) cells(add(add(about, "details"), "div"), Object.entries(now.told));
    const fold = about.querySelector("details");
    if (fold) { const line = document.createElement("summary"); line.textContent = "Why this row is asked about"; fold.prepend(line); }
    answers.replaceChildren();
    (now.answers || []).forEach((one, at) => {
      const button = add(add(answers, "li"), "button");
      button.type = "button";
      button.dataset.value = one.value;
      add(button, "kbd", String(at + 1));
      button.append(` ${one.value}  (${one.by.join(", ")})`);
    });
    input.value = "";
    if (document.activeElement !== document.body && main.contains(document.activeElement)) document.activeElement.blur();
  };

  const sleep = (time) => new Promise((ready) => setTimeout(ready, time));
  const act = async (what, more = {}) => {
    if (busy) return;
    busy = true;
    clearTimeout(waiting);
    const body = JSON.stringify({ of: main.dataset.of, who, ...(now ? { queue: now.queue, id: now.id, part: now.part, second: now.second } : {}), ...more });
    try {
      for (;;) {
        let answer;
        try {
          answer = await fetch(`/act/${what}`, { method: "POST", body, headers: { "content-type": "application/json" } });
        } catch {
          tell(what === "label" ? "Not known to be saved: the studio does not answer. It is sent again by itself." : "The studio does not answer. It is asked again by itself.", true);
          await sleep(1000);
          continue;
        }
        const found = await answer.json().catch(() => ({ error: `the studio answered ${answer.status}` }));
        if (answer.status === 503) { tell(found.error, true); await sleep(1000); continue; }
        if (!answer.ok) { tell(`Not saved: ${found.error}`, true); return; }
        show(found);
        return;
      }
    } finally { busy = false; }
  };
  const label = (value) => { if (now && String(value).trim()) act("label", { value: String(value), stamp: random() }); };

  form.addEventListener("submit", (event) => { event.preventDefault(); label(input.value); });
  main.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("button");
    if (!button) return;
    if (button.dataset.act === "twice") { act("twice"); return; }
    if (!now) { if (button.dataset.act === "undo") act("undo"); return; }
    if (button.dataset.value !== undefined) label(button.dataset.value);
    const what = button.dataset.act;
    if (what === "unknown") label("?");
    if (what === "later" || what === "undo") act(what);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target instanceof Element && event.target.closest("input, textarea, select");
    if (typing) {
      if (event.key === "Escape") input.blur();
      return;
    }
    const list = answers.querySelectorAll("button"), at = "123456789".indexOf(event.key);
    if (event.key === "u") { event.preventDefault(); act("undo"); return; }
    if (!now) return;
    if (at >= 0 && at < list.length) { event.preventDefault(); label(list[at].dataset.value); }
    else if (event.key === "?") { event.preventDefault(); label("?"); }
    else if (event.key === "s") { event.preventDefault(); act("later"); }
    else if (event.key.length === 1 && event.key !== " ") input.focus();
  });
  setInterval(() => {
    if (now && !document.hidden && !busy) {
      fetch("/act/prolong", { method: "POST", body: JSON.stringify({ of: main.dataset.of, who }), headers: { "content-type": "application/json" } }).catch(() => undefined);
    }
  }, 45000);
  act("next");
})();
