// The whole of the explorer within an element: tabs, messages, images; what it talks to is given.

import { Bench } from "./bench.js";
import { allCells } from "./cells.js";
import { button, h } from "./dom.js";
import { Evidence } from "./evidence.js";
import { Maps } from "./maps.js";
import { State } from "./state.js";
import { Strip } from "./strip.js";
import { Study } from "./study.js";

const THEMES = ["auto", "light", "dark"];

export class App {
  constructor(root, channel, link) {
    Object.assign(this, { root, channel, link, watchers: [] });
    root.classList.add("suffice");
  }

  async start(given = {}) {
    this.hello = await this.channel.ask("hello");
    const { hello } = this;
    const usual = {
      tab: hello.study && !hello.models.length ? "study" : "bench", image: "0", grid: 7,
      model: hello.models[0]?.name || "", baseline: "blur", target: "", method: "", table: hello.study?.tables[0]?.name || "",
      filters: "", sort: "", bins: "", ...given,
    };
    usual.cells = allCells(usual.grid);
    this.state = new State(usual, this.link);
    if (hello.models.length && !hello.models.some(({ name }) => name === this.state.get("model"))) this.state.values.model = usual.model;
    this.toast = h("div", { className: "toast", role: "alert", hidden: true });
    this.strip = new Strip(this.channel, hello, this.state, this.say.bind(this));
    this.say = this.say.bind(this);
    this.bench = new Bench(this);
    this.evidence = new Evidence(this);
    this.maps = new Maps(this);
    this.study = hello.study ? new Study(this) : null;
    const places = [
      ["bench", "Bench", this.bench], ["evidence", "Evidence", this.evidence], ["maps", "Maps", this.maps],
      ...(this.study ? [["study", "Study", this.study]] : []),
    ].filter(([name]) => name === "study" || hello.models.length);
    this.tabs = new Map(places.map(([name, text, place]) => [name, { place, tab: this.tab(name, text) }]));
    this.theme = button("", () => this.nextTheme(), { className: "button small theme" });
    const head = h("header", {},
      h("h1", {}, h("span", { className: "logo", "aria-hidden": "true" }), "suffice", h("span", { className: "quiet" }, " explorer")),
      h("nav", { role: "tablist", "aria-label": "Parts of the explorer" }, ...[...this.tabs.values()].map(({ tab }) => tab)),
      h("span", { className: "grow" }), this.theme);
    this.panels = h("main", {}, ...places.map(([name, , place]) => {
      place.element.id = `panel-${name}`;
      place.element.setAttribute("role", "tabpanel");
      return place.element;
    }));
    this.root.replaceChildren(head, this.panels, this.strip.element, this.toast);
    this.setTheme(this.storedTheme());
    this.state.on(["tab"], () => this.turn());
    this.watch();
    this.turn();
    await this.strip.start();
    if (hello.models.length) this.bench.start();
    this.root.dataset.ready = "true";
  }

  tab(name, text) {
    return h("button", {
      type: "button", role: "tab", "aria-controls": `panel-${name}`, on: {
        click: () => this.state.set({ tab: name }),
        keydown: (event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (!step) return;
          const names = [...this.tabs.keys()];
          const next = names[(names.indexOf(name) + step + names.length) % names.length];
          this.state.set({ tab: next });
          this.tabs.get(next).tab.focus();
        },
      },
    }, text);
  }

  turn() {
    if (!this.tabs.has(this.state.get("tab"))) this.state.values.tab = this.tabs.keys().next().value; // by a link
    const chosen = this.state.get("tab");
    for (const [name, { place, tab }] of this.tabs) {
      const on = name === chosen;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      place.element.hidden = !on;
    }
    this.strip.element.hidden = chosen === "study";
    this.tabs.get(chosen)?.place.open?.();
  }

  watch() {
    const { root } = this;
    root.addEventListener("keydown", (event) => {
      if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
      if (this.state.get("tab") === "bench") this.bench.key(event);
    });
    if (this.link) { // the page is ours alone: keys count wherever the focus is
      document.addEventListener("keydown", (event) => {
        const undoes = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z";
        if (undoes && !event.target.closest("input, select, textarea")) {
          event.preventDefault();
          event.shiftKey ? this.state.redo() : this.state.undo();
        } else if (event.target === document.body) {
          const { key, ctrlKey, metaKey, altKey } = event;
          root.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey, metaKey, altKey, bubbles: false }));
        }
      });
    }
    root.addEventListener("dragover", (event) => { event.preventDefault(); root.classList.add("dropping"); });
    root.addEventListener("dragleave", (event) => { if (!root.contains(event.relatedTarget)) root.classList.remove("dropping"); });
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      root.classList.remove("dropping");
      this.strip.take(event.dataTransfer.files);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
  }

  // What a model sees has changed: whoever draws it is told.
  seen(pictures) {
    this.pictures = pictures;
    for (const watcher of this.watchers) watcher(pictures);
  }

  say(text, bad = false) {
    clearTimeout(this.saying);
    this.toast.textContent = text;
    this.toast.classList.toggle("bad", bad);
    this.toast.hidden = false;
    this.saying = setTimeout(() => { this.toast.hidden = true; }, bad ? 9000 : 6000);
  }

  // A dialog to choose one of many texts, or a number.
  pick(title, texts, chosen) {
    const id = "pick-list";
    const take = ({ value }) => {
      if (texts.includes(value) || /^\d+$/.test(value)) chosen(value);
      else this.say(`${value || "Nothing"} is not among them.`, true);
    };
    const input = h("input", { type: "text", list: id, autocomplete: "off", "aria-label": title });
    const dialog = h("dialog", { className: "pick" },
      h("form", { method: "dialog", on: { submit: () => take(input) } },
        h("h2", {}, title), input, h("datalist", { id }, ...texts.map((text) => h("option", { value: text }))),
        h("div", { className: "tools" }, h("span", { className: "grow" }),
          button("Cancel", () => dialog.close()), h("button", { className: "button strong", type: "submit" }, "Choose"))));
    dialog.addEventListener("close", () => dialog.remove());
    this.root.append(dialog);
    dialog.showModal();
  }

  storedTheme() {
    try {
      return localStorage.getItem("suffice-theme") || "auto";
    } catch {
      return "auto";
    }
  }

  nextTheme() {
    this.setTheme(THEMES[(THEMES.indexOf(this.root.dataset.theme) + 1) % THEMES.length]);
  }

  setTheme(theme) {
    this.root.dataset.theme = THEMES.includes(theme) ? theme : "auto";
    if (this.link) document.documentElement.dataset.theme = this.root.dataset.theme;
    try {
      localStorage.setItem("suffice-theme", this.root.dataset.theme);
    } catch { /* a notebook may not let us */ }
    this.theme.textContent = { auto: "Auto", light: "Light", dark: "Dark" }[this.root.dataset.theme];
    this.theme.title = "Colors: as the system has them, light, or dark";
    this.theme.ariaLabel = `Colors: ${this.root.dataset.theme}`;
    this.repaint();
  }

  repaint() {
    this.bench?.models.repaint();
    this.bench?.board.draw();
    for (const { place } of this.tabs.values()) place.repaint?.();
  }
}
