"use strict";
// A run while it goes on. The browser connects again by itself when the studio was away.
(() => {
  const main = document.querySelector("main[data-live]");
  if (!main) return;
  const verdicts = ["checked", "consistent", "ambiguous", "incomplete", "contradicted"];
  const set = (name, text) => { const place = main.querySelector(`[data-name="${name}"]`); if (place) place.textContent = text; };
  const whole = (value) => value.toLocaleString("en").replace(/,/g, "\u202f");
  const amount = (value) => String(Math.round(value * 1e6) / 1e6);
  const of = (value, limit) => (limit === null || limit === undefined ? "no limit named" : `of ${amount(limit)}`);
  const namespace = "http://www.w3.org/2000/svg";
  const show = (now) => {
    if (now.trouble) { set("state", `Can't be read: ${now.trouble}`); return; }
    const decided = verdicts.reduce((sum, name) => sum + now.verdicts[name], 0);
    set("state", now.because === null ? "It goes on; what is shown is so far." : `Ended: ${now.because}.`);
    set("items", `${whole(decided)} of ${whole(now.items)}`);
    set("answered", `${whole(now.answered)} have answers and wait for none`);
    set("spent", amount(now.spent)); set("budget", of(now.spent, now.budget));
    set("calls", whole(now.calls)); set("flight", `${whole(now.in_flight)} in flight`);
    set("money", amount(now.money)); set("limit", of(now.money, now.money_limit));
    set("rate", now.a_second === null ? "–" : amount(Math.round(now.a_second * 10) / 10));
    const left = now.answered && now.a_second ? ((now.items - now.answered) * now.calls) / now.answered / now.a_second : null;
    const time = left === null ? "" : left < 90 ? `${Math.ceil(left)} s` : `${Math.ceil(left / 60)} min`;
    set("over", now.because === null && time ? `about ${time} left, at this rate` : "");
    const failed = Object.entries(now.failures);
    set("failed", whole(failed.reduce((sum, [, count]) => sum + count, 0)));
    set("kinds", failed.map(([name, count]) => `${count} × ${name}`).join(", ") || "none");
    const bar = main.querySelector("svg.verdicts"), legend = main.querySelector(".bar-by-verdict .legend");
    bar.replaceChildren(); legend.replaceChildren();
    let at = 0;
    for (const name of verdicts) {
      const count = now.verdicts[name], share = (100 * count) / Math.max(1, now.items);
      if (!count) continue;
      const draw = (parent, x, width) => {
        const part = document.createElementNS(namespace, "rect");
        for (const [key, value] of Object.entries({ x, y: 0, width, height: 10, class: `v-${name}` })) part.setAttribute(key, value);
        parent.append(part);
      };
      draw(bar, at, share);
      at += share;
      const line = document.createElement("li"), sign = document.createElementNS(namespace, "svg");
      sign.setAttribute("viewBox", "0 0 10 10");
      draw(sign, 0, 10);
      line.append(sign, ` ${whole(count)} ${name}`);
      legend.append(line);
    }
    bar.setAttribute("aria-label", verdicts.filter((name) => now.verdicts[name]).map((name) => `${now.verdicts[name]} ${name}`).join(", ") || "no verdicts yet");
  };
  const source = new EventSource(`/events?${new URLSearchParams({ of: main.dataset.live })}`);
  source.addEventListener("progress", (event) => show(JSON.parse(event.data)));
  source.addEventListener("error", () => set("state", "The studio does not answer; what is shown is from before. It is asked again by itself."));
})();
