// A row for each model: how much of its confidence is left, as a bar beside the line of what is enough.

import { h, percent } from "./dom.js";
import { isDark, rampColor } from "./colors.js";

const LONGEST = 1.1; // ratio at the end of a bar: a part can convince more than the whole

export class Models {
  constructor(hello, choose) {
    this.hello = hello;
    this.rows = new Map();
    this.answers = new Map();
    this.list = h("div", { className: "models", role: "radiogroup", "aria-label": "Models" });
    for (const model of hello.models) this.list.append(this.row(model, choose));
    this.element = h("div", { className: "panel" }, this.axis(), this.list);
  }

  axis() {
    const at = (ratio, text, name) => {
      const tick = h("span", { className: `tick ${name || ""}` }, text);
      tick.style.left = `${(100 * ratio) / LONGEST}%`;
      return tick;
    };
    const line = at(this.hello.enough, `${Math.round(100 * this.hello.enough)} %`, "enough");
    return h("div", { className: "axis", "aria-hidden": "true" }, h("div", { className: "ticks" }, at(0, "0"), at(0.5, "50 %"), line));
  }

  row(model, choose) {
    const bar = h("div", { className: "bar" });
    const line = h("div", { className: "line" });
    line.style.left = `${(100 * this.hello.enough) / LONGEST}%`;
    const parts = {
      bar,
      label: h("span", { className: "label" }),
      number: h("span", { className: "number" }, "–"),
      more: h("span", { className: "more" }),
    };
    const row = h("div",
      { className: "model", role: "radio", tabIndex: -1, "data-model": model.name, on: { click: () => choose(model.name) } },
      h("div", { className: "who" }, h("span", { className: "name", title: `${model.name}, ${model.family}` }, model.name), parts.label),
      h("div", { className: "track" }, bar, line),
      h("div", { className: "what" }, parts.number, parts.more));
    row.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const rows = [...this.list.children];
      if (step) {
        event.preventDefault();
        const next = rows[(rows.indexOf(row) + step + rows.length) % rows.length];
        choose(next.dataset.model);
        next.focus();
      } else if (event.key === " " || event.key === "Enter") {
        event.preventDefault();
        choose(model.name);
      }
    });
    this.rows.set(model.name, { element: row, ...parts });
    return row;
  }

  select(name) {
    for (const [model, { element }] of this.rows) {
      element.setAttribute("aria-checked", String(model === name));
      element.tabIndex = model === name ? 0 : -1;
    }
  }

  answer(name, answer) {
    const row = this.rows.get(name);
    if (!row || answer.dropped) return;
    this.answers.set(name, answer);
    this.paint(name);
  }

  paint(name) {
    const row = this.rows.get(name);
    const answer = this.answers.get(name);
    if (!answer) return;
    row.element.classList.toggle("failed", Boolean(answer.error));
    row.element.classList.toggle("enough", Boolean(answer.enough));
    if (answer.error) {
      row.bar.style.width = "0";
      row.label.textContent = answer.error.message;
      row.number.textContent = "–";
      row.more.textContent = "";
      row.element.setAttribute("aria-label", `${name}: ${answer.error.message}`);
      return;
    }
    row.bar.style.width = `${(100 * Math.min(answer.ratio, LONGEST)) / LONGEST}%`;
    row.bar.style.backgroundColor = rampColor(this.hello.ramp, answer.ratio, isDark(this.element));
    const ratio = this.percent(answer);
    row.number.textContent = ratio;
    row.more.textContent = `${percent(answer.confidence)} of ${percent(answer.whole)}`;
    row.label.replaceChildren(answer.label, ...(answer.wins ? [] : [h("em", {}, answer.says ? ` → ${answer.says.label} ${percent(answer.says.confidence)}` : " → …")]));
    const instead = answer.says ? `, says ${answer.says.label} instead` : "";
    row.element.setAttribute("aria-label",
      `${name}: ${ratio} of its confidence in ${answer.label}, ${answer.enough ? "enough" : "not enough"}${instead}`);
  }

  // With a decimal where what is not enough would read as if it were.
  percent({ ratio, enough }) {
    const close = !enough && Math.round(100 * ratio) >= Math.round(100 * this.hello.enough);
    return close ? `${(Math.floor(1000 * ratio) / 10).toFixed(1)} %` : percent(ratio);
  }

  repaint() {
    for (const name of this.answers.keys()) this.paint(name);
  }

  get enough() {
    return [...this.answers.values()].filter((answer) => answer.enough).length;
  }
}
