// What is enough, by models side by side, and the structured attention graph of one of them.

import { thumbnail } from "./board.js";
import { fromList } from "./cells.js";
import { button, counted, download, h, percent } from "./dom.js";
import { isDark } from "./colors.js";
import { Work } from "./work.js";

const MOST = 12; // explanations of a model that are shown
const FINEST_GRID = 14;

export class Evidence {
  constructor(app) {
    Object.assign(this, { app, state: app.state, hello: app.hello, found: new Map() });
    this.work = new Work(app.channel, app.say);
    this.list = h("div", { className: "side-by-side" });
    this.graph = h("div", { className: "graph", tabIndex: 0, role: "group", "aria-label": "Structured attention graph; plus and minus zoom, arrows move" });
    this.title = h("h2", {}, "Structured attention graph");
    this.zooming = h("div", { className: "tools" }, this.title, h("span", { className: "grow" }),
      button("−", () => this.zoom(0.8), { className: "button round", ariaLabel: "Smaller" }),
      button("+", () => this.zoom(1.25), { className: "button round", ariaLabel: "Larger" }),
      button("Fit", () => this.fit()),
      button("Save SVG", () => this.save()));
    this.all = button("Search all models", () => this.searchAll(), { className: "button strong" });
    this.element = h("section", { className: "evidence", "aria-label": "Evidence" },
      h("div", { className: "tools" },
        h("p", { className: "quiet caption" }, "Minimal sufficient explanations (MSEs): the smallest regions that keep 90 % of a model’s confidence. Click one to put it on the bench."),
        h("span", { className: "grow" }), this.all),
      this.work.element, this.list, this.zooming, this.graph);
    this.state.on(["image", "baseline", "target", "grid", "model"], () => this.refresh());
    app.watchers.push(() => this.refresh());
    this.watch();
  }

  open() {
    this.refresh();
  }

  get grid() {
    return this.state.get("grid") <= FINEST_GRID ? this.state.get("grid") : 7;
  }

  key(model) {
    return [model, this.state.get("image"), this.grid, this.state.get("baseline"), this.state.get("target")].join("\n");
  }

  refresh() {
    if (this.element.hidden) return;
    this.list.replaceChildren(...this.hello.models.map(({ name }) => this.row(name)));
    this.drawGraph();
  }

  row(model) {
    const found = this.found.get(this.key(model));
    const chosen = model === this.state.get("model");
    const name = h("button", { type: "button", className: "name plain", "aria-pressed": String(chosen), on: { click: () => this.state.set({ model }) } }, model);
    const head = h("div", { className: "who" }, name,
      h("span", { className: "label" }, found ? `${found.label}, ${percent(found.confidence)} · ${counted(found.mses.length, "MSE")}` : ""));
    if (!found) return h("div", { className: "evidence-row" }, head, h("div", { className: "mses" }, button("Search", () => this.search(model), { ariaLabel: `Search the evidence of ${model}` })));
    const mses = found.mses.slice(0, MOST).map((mse, i) => this.item(found, mse, i, model));
    const rest = found.mses.length > MOST ? [h("span", { className: "quiet" }, `+${found.mses.length - MOST}`)] : [];
    return h("div", { className: "evidence-row" }, head, h("div", { className: "mses" }, ...mses, ...rest,
      ...(found.mses.length ? [] : [h("span", { className: "quiet" }, found.why)])));
  }

  item(found, mse, i, model) {
    const text = `MSE ${i + 1} of ${model}: ${counted(mse.cells.length, "cell")}, ${percent(mse.ratio)}`;
    const picture = this.app.pictures ? thumbnail(this.app.pictures, found.grid, fromList(mse.cells, found.grid), 64) : h("span", { className: "thumb" });
    return h("button", { type: "button", className: "mse plain", title: text, ariaLabel: `${text}; put it on the bench`, on: { click: () => this.put(mse.cells, found.grid, model) } },
      picture, h("span", {}, `${mse.cells.length} · ${percent(mse.ratio)}`));
  }

  put(cells, grid, model) {
    this.state.set({ model, tab: "bench" });
    this.app.bench.putList(cells, grid);
  }

  async search(model) {
    const { state } = this;
    const key = this.key(model);
    const data = { image: state.get("image"), grid: this.grid, baseline: state.get("baseline"), model };
    if (state.get("target")) data.target = state.get("target");
    const found = await this.work.run("evidence", data, `Searching with ${model}`);
    if (!found) return false;
    this.found.set(key, found);
    if (this.found.size > 60) this.found.delete(this.found.keys().next().value);
    this.refresh();
    return true;
  }

  async searchAll() {
    this.all.disabled = true;
    try {
      for (const { name } of this.hello.models) {
        if (!this.found.has(this.key(name)) && !(await this.search(name))) break;
      }
    } finally {
      this.all.disabled = false;
    }
  }

  drawGraph() {
    const found = this.found.get(this.key(this.state.get("model")));
    this.zooming.hidden = this.graph.hidden = !found;
    const dark = isDark(this.element);
    if (!found || (found === this.drawn && dark === this.dark)) return;
    Object.assign(this, { drawn: found, dark });
    this.title.textContent = `Structured attention graph: ${this.state.get("model")}`;
    const parsed = new DOMParser().parseFromString(dark ? found.dark : found.svg, "image/svg+xml").documentElement;
    this.svg = document.importNode(parsed, true);
    this.svg.removeAttribute("width");
    this.svg.removeAttribute("height");
    this.whole = this.svg.getAttribute("viewBox").split(" ").map(Number);
    for (const title of this.svg.querySelectorAll("g > title")) this.makeNode(title.parentNode, title.textContent, found);
    this.graph.replaceChildren(this.svg);
    this.fit();
  }

  // Nodes of the graph say their cells in their title.
  makeNode(group, text, found) {
    const named = /^((?:P\d+)(?: ∧ P\d+)*): ratio/.exec(text);
    if (!named) return;
    const cells = named[1].match(/\d+/g).map(Number);
    const put = () => this.put(cells, found.grid, this.state.get("model"));
    group.classList.add("node");
    group.setAttribute("tabindex", "0");
    group.setAttribute("role", "button");
    group.setAttribute("aria-label", `${text.split("\n")[0]}; put it on the bench`);
    group.addEventListener("click", () => { if (!this.moved) put(); });
    group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); put(); } });
  }

  repaint() {
    this.refresh();
  }

  fit() {
    this.view = [...this.whole];
    this.place();
  }

  place() {
    this.svg.setAttribute("viewBox", this.view.map((value) => value.toFixed(2)).join(" "));
  }

  zoom(by, x = 0.5, y = 0.5) {
    if (!this.svg) return;
    const [left, top, width, height] = this.view;
    const factor = Math.min(Math.max(width / by, this.whole[2] / 12), this.whole[2] * 1.5) / width;
    this.view = [left + x * width * (1 - factor), top + y * height * (1 - factor), width * factor, height * factor];
    this.place();
  }

  watch() {
    const { graph } = this;
    graph.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // pages scroll
      event.preventDefault();
      const box = graph.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY / 300), (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    }, { passive: false });
    let last = null;
    graph.addEventListener("pointerdown", (event) => { last = [event.clientX, event.clientY]; this.moved = false; });
    graph.addEventListener("pointermove", (event) => {
      if (!last || !event.buttons) return;
      const scale = this.view[2] / graph.clientWidth;
      const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
      if (!this.moved && Math.hypot(dx, dy) < 4) return;
      this.moved = true;
      last = [event.clientX, event.clientY];
      this.view = [this.view[0] - dx * scale, this.view[1] - dy * scale, this.view[2], this.view[3]];
      this.place();
    });
    graph.addEventListener("pointerup", () => { last = null; });
    graph.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[event.key];
      if (event.key === "+" || event.key === "=") this.zoom(1.25);
      else if (event.key === "-") this.zoom(0.8);
      else if (event.key === "0") this.fit();
      else if (step && event.target === graph) {
        this.view[0] += step[0] * this.view[2];
        this.view[1] += step[1] * this.view[3];
        this.place();
      } else return;
      event.preventDefault();
    });
  }

  save() {
    download("suffice-graph.svg", this.drawn.svg, "image/svg+xml");
  }
}
