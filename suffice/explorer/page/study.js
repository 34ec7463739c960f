// A study: rows of its tables, filtered, sorted and counted where they lie, and its figures; from each to the bench.

import { button, choice, counted, h, labeled, select } from "./dom.js";

const ROWS_AT_ONCE = 50;
const FIRST = 14; // columns that are shown before anybody asks for more

export class Study {
  constructor(app) {
    Object.assign(this, { app, state: app.state, about: app.hello.study, offset: 0, wide: false, drawn: null });
    const tables = this.about.tables.map(({ name }) => [name, name]);
    this.table = select("Table", tables, this.state.get("table"), (table) => this.state.set({ table, filters: "", sort: "", bins: "" }));
    this.tableBox = labeled("Table", this.table.element);
    this.kind = choice("What is shown of the study", [{ value: "rows", text: "Tables" }, { value: "figures", text: "Figures" }], "rows", (kind) => this.show(kind));
    this.chips = h("div", { className: "chips" });
    this.column = select("Column to filter by", [], "", () => this.fillComparisons());
    this.by = select("Comparison", [], "", () => this.fillValue());
    this.valueBox = h("span", {});
    this.bins = select("Column whose spread is shown", [], "", (bins) => this.state.set({ bins }));
    this.spread = h("div", { className: "spread", role: "group", "aria-label": "How rows spread; a bar filters" });
    this.head = h("thead");
    this.body = h("tbody");
    this.count = h("span", { className: "quiet" });
    this.before = button("‹", () => this.page(-ROWS_AT_ONCE), { className: "button round", ariaLabel: "Earlier rows" });
    this.after = button("›", () => this.page(ROWS_AT_ONCE), { className: "button round", ariaLabel: "Later rows" });
    this.more = button("All columns", () => { this.wide = !this.wide; this.more.textContent = this.wide ? "Fewer columns" : "All columns"; this.draw(); });
    const add = h("form", { className: "tools", on: { submit: (event) => { event.preventDefault(); this.add(); } } },
      labeled("Where", this.column.element), this.by.element, this.valueBox, h("button", { className: "button", type: "submit" }, "Add filter"));
    this.rows = h("div", { className: "rows" }, this.chips, add, h("div", { className: "tools" }, labeled("Spread of", this.bins.element)), this.spread,
      h("div", { className: "tools" }, this.count, h("span", { className: "grow" }), this.more, this.before, this.after),
      h("div", { className: "table", tabIndex: 0, role: "region", "aria-label": "Rows" }, h("table", {}, this.head, this.body)));
    this.figures = h("div", { className: "figures", hidden: true });
    this.element = h("section", { className: "study", "aria-label": "Study" },
      h("div", { className: "tools" }, h("h2", {}, this.about.name), this.kind.element, h("span", { className: "grow" }), this.tableBox),
      this.rows, this.figures);
    this.state.on(["table", "filters", "sort", "bins"], () => { this.offset = 0; this.load(); });
  }

  open() {
    if (!this.loaded) this.load();
  }

  get columns() {
    return this.about.tables.find(({ name }) => name === this.state.get("table"))?.columns || [];
  }

  get filters() {
    try {
      const read = JSON.parse(this.state.get("filters") || "[]");
      return Array.isArray(read) ? read.filter((one) => one && typeof one === "object") : [];
    } catch {
      return [];
    }
  }

  set filters(list) {
    this.state.set({ filters: list.length ? JSON.stringify(list) : "" });
  }

  get sorting() {
    const sort = this.state.get("sort");
    return sort.startsWith("-") ? { sort: sort.slice(1), descending: true } : sort ? { sort } : {};
  }

  async load() {
    if (this.element.hidden) { this.loaded = false; return; }
    this.loaded = true;
    this.table.set(this.state.get("table"));
    this.fill();
    const data = { table: this.state.get("table"), filters: this.filters, ...this.sorting, offset: this.offset, count: ROWS_AT_ONCE };
    if (this.state.get("bins")) data.bins = this.state.get("bins");
    const ticket = (this.ticket = {});
    try {
      const found = await this.app.channel.ask("rows", data);
      if (ticket !== this.ticket || !found) return;
      this.found = found;
      this.draw();
    } catch (error) {
      if (error.kind !== "Lost") this.app.say(error.message, true);
    }
  }

  fill() {
    const names = this.columns.map(({ name }) => [name, name]);
    const numbers = [["", "nothing"], ...this.columns.filter(({ kind }) => kind !== "list").map(({ name }) => [name, name])];
    if (this.filled !== this.state.get("table")) {
      this.column.fill(names, names[0]?.[0] || "");
      this.fillComparisons();
      this.filled = this.state.get("table");
    }
    this.bins.fill(numbers, this.state.get("bins"));
    this.chips.replaceChildren(...this.filters.map((one, i) => h("button", {
      type: "button", className: "chip", title: "Take this filter away", on: { click: () => { this.filters = this.filters.filter((_, j) => j !== i); } },
    }, `${one.column} ${one.by} ${written(one.value)}`, h("span", { "aria-hidden": "true" }, " ×"))));
  }

  get chosen() {
    return this.columns.find(({ name }) => name === this.column.element.value);
  }

  fillComparisons() {
    const fitting = this.about.comparisons[this.chosen?.kind || "text"];
    this.by.fill(fitting.map((one) => [one, one]), fitting[0]);
    this.fillValue();
  }

  fillValue() {
    const { kind, values } = this.chosen || {};
    const by = this.by.element.value;
    if (by === "missing" || by === "there") this.value = null;
    else if (kind === "flag") this.value = select("Value", [["true", "true"], ["false", "false"]], "true", () => {}).element;
    else if (values && by !== "contains") this.value = select("Value", values.map((one) => [one, one]), values[0], () => {}).element;
    else this.value = h("input", { type: kind === "number" ? "number" : "text", step: "any", required: true, "aria-label": "Value" });
    this.valueBox.replaceChildren(...(this.value ? [this.value] : []));
  }

  add() {
    const { name, kind } = this.chosen;
    const one = { column: name, by: this.by.element.value };
    if (this.value) one.value = kind === "number" ? Number(this.value.value) : kind === "flag" ? this.value.value === "true" : this.value.value;
    this.filters = [...this.filters, one];
  }

  page(step) {
    this.offset = Math.max(0, this.offset + step);
    this.load();
  }

  draw() {
    const { found } = this;
    const shown = found.columns.map((name, i) => ({ name, i, kind: this.columns.find((one) => one.name === name)?.kind,
      decimals: found.rows.some((row) => typeof row[i] === "number" && !Number.isInteger(row[i])) }))
      .filter(({ name, i }) => this.wide || (name !== "image_id" && found.rows.some((row) => row[i] !== null)))
      .slice(0, this.wide ? undefined : FIRST);
    const { sort, descending } = this.sorting;
    this.head.replaceChildren(h("tr", {}, ...shown.map(({ name, kind }) => {
      const direction = sort === name ? (descending ? "descending" : "ascending") : null;
      return h("th", { scope: "col", className: kind, "aria-sort": direction },
        button(`${name}${direction ? (descending ? " ↓" : " ↑") : ""}`, () => this.state.set({ sort: sort === name && !descending ? `-${name}` : name }), { className: "plain" }));
    })));
    this.body.replaceChildren(...found.rows.map((row) => this.row(row, shown)));
    const last = Math.min(found.offset + found.rows.length, found.all);
    this.count.textContent = found.all ? `Rows ${found.offset + 1} to ${last} of ${found.all.toLocaleString("en-US")}` : "No row is like that.";
    this.before.disabled = found.offset === 0;
    this.after.disabled = last >= found.all;
    this.more.hidden = found.columns.length <= FIRST;
    this.drawSpread();
  }

  row(row, shown) {
    const made = h("tr", {}, ...shown.map(({ i, kind, decimals }) => h("td", { className: kind }, written(row[i], decimals))));
    const value = (name) => row[this.found.columns.indexOf(name)];
    const index = value("index");
    if (Number.isInteger(index) && this.app.hello.models.length) {
      made.tabIndex = 0;
      made.title = "Put this image on the bench";
      const go = () => this.toBench(index, value("model"));
      made.addEventListener("click", go);
      made.addEventListener("keydown", (event) => { if (event.key === "Enter") go(); });
    }
    return made;
  }

  toBench(index, model) {
    const known = this.app.hello.models.some(({ name }) => name === model);
    this.state.set({ image: String(index), tab: "bench", ...(known ? { model } : {}) });
    this.app.strip.start();
  }

  drawSpread() {
    const bins = this.found.bins;
    this.spread.hidden = !bins;
    if (!bins) return;
    const bars = bins.values
      ? bins.values.map(([value, count]) => ({ text: value ?? "missing", count, filter: [{ column: bins.column, by: value === null ? "missing" : "is", value: this.typed(bins.column, value) }] }))
      : bins.counts.map((count, i) => {
        const [low, high] = [bins.low + i * bins.width, bins.low + (i + 1) * bins.width];
        return { text: `${written(low)} to ${written(high)}`, count, filter: [{ column: bins.column, by: "≥", value: low }, { column: bins.column, by: i + 1 < bins.counts.length ? "<" : "≤", value: high }] };
      });
    if (!bars.length) {
      this.spread.replaceChildren(h("p", { className: "quiet" }, "No row has a value there."));
      return;
    }
    const most = Math.max(1, ...bars.map(({ count }) => count));
    this.spread.replaceChildren(h("div", { className: "bins" }, ...bars.map(({ text, count, filter }) => {
      const inside = h("span", { className: "fill" });
      inside.style.height = `${(100 * count) / most}%`;
      return h("button", { type: "button", className: "bin", disabled: !count, title: `${text}: ${counted(count, "row")}`, ariaLabel: `${text}: ${counted(count, "row")}; show them`,
        on: { click: () => { this.filters = [...this.filters.filter((one) => one.column !== bins.column), ...filter]; } } }, inside);
    })));
    const [first, last] = [bars[0].text, bars.at(-1).text];
    this.spread.append(h("div", { className: "ends quiet" }, h("span", {}, bins.values ? first : written(bins.low)), h("span", {}, bins.values ? last : written(bins.low + bins.width * bins.counts.length))));
  }

  typed(column, value) {
    const kind = this.columns.find(({ name }) => name === column)?.kind;
    return kind === "flag" ? value === "true" : value;
  }

  async show(kind) {
    this.kind.set(kind);
    this.rows.hidden = kind !== "rows";
    this.figures.hidden = kind !== "figures";
    this.tableBox.hidden = kind !== "rows";
    if (kind === "figures") await this.drawFigures();
  }

  async drawFigures() {
    const theme = getComputedStyle(this.element).getPropertyValue("--scheme").trim();
    if (this.drawn === theme) return;
    try {
      if (!this.charts) {
        this.figures.replaceChildren(h("p", { className: "quiet" }, "Drawing the figures …"));
        this.charts = (await this.app.channel.ask("figures")).figures;
      }
      if (this.charts.some((one) => one.light) && !window.vegaEmbed) await this.app.channel.loadCharts();
      this.drawn = theme;
      this.figures.replaceChildren(...(this.charts.length ? [] : [h("p", { className: "quiet" }, "There are no figures of this study yet.")]));
      for (const one of this.charts) await this.figure(one, theme);
    } catch (error) {
      this.figures.replaceChildren(h("p", { className: "quiet" }, `The figures cannot be drawn: ${error.message}`));
    }
  }

  async figure(one, theme) {
    const place = h("div", { className: "chart" });
    this.figures.append(h("figure", {}, h("figcaption", {}, h("strong", {}, one.title), " ", h("span", { className: "quiet" }, one.reading)), place));
    if (one.svg) {
      place.classList.add("paper");
      place.append(document.importNode(new DOMParser().parseFromString(theme === "dark" ? one.dark_svg : one.svg, "image/svg+xml").documentElement, true));
      return;
    }
    const { view } = await window.vegaEmbed(place, one[theme] || one.light, {
      actions: false, ast: true, defaultStyle: false, renderer: "svg", logLevel: 1, tooltip: { disableDefaultStyle: true, theme },
    });
    place.querySelector("svg")?.setAttribute("aria-label", one.alt);
    view.addEventListener("click", (_, item) => { if (item?.datum) this.behind(item.datum, one.behind); });
  }

  // From a mark to its rows: as the figure says, else by what the mark says of columns that a table has.
  behind(datum, rows) {
    const fields = Object.entries(rows?.columns || {}).filter(([name]) => ["string", "number"].includes(typeof datum[name]));
    if (fields.length) {
      const always = Object.entries(rows.always).map(([column, value]) => ({ column, by: "is", value }));
      const filters = fields.map(([name, [column, by]]) => ({ column, by, value: by === "has" ? String(datum[name]) : datum[name] }));
      this.show("rows");
      this.state.set({ table: rows.table, sort: "", bins: "", filters: JSON.stringify([...always, ...filters]) });
      return;
    }
    const known = this.about.tables.map((table) => ({ table, columns: table.columns.filter(({ name }) => ["model", "image", "label", "method", "family"].includes(name) && typeof datum[name] === "string") }));
    const best = known.reduce((a, b) => (b.columns.length > a.columns.length ? b : a), known[0]);
    if (!best || !best.columns.length) return;
    this.show("rows");
    this.state.set({ table: best.table.name, sort: "", bins: "", filters: JSON.stringify(best.columns.map(({ name }) => ({ column: name, by: "is", value: datum[name] }))) });
  }

  repaint() {
    if (!this.figures.hidden) this.drawFigures();
  }
}

function written(value, decimals = false) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" && (decimals || !Number.isInteger(value))) return Math.abs(value) >= 1e-3 || value === 0 ? value.toFixed(3) : value.toExponential(1);
  return String(value);
}
