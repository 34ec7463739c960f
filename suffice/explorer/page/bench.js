// The bench: hide and show parts of an image, and see what each model makes of the rest.

import { Board } from "./board.js";
import { allCells, countOf, fromList, listOf, noCells, packCells, regrid, sameCells } from "./cells.js";
import { button, choice, counted, download, h, labeled, percent, select } from "./dom.js";
import { Models } from "./models.js";
import { Work } from "./work.js";

export class Bench {
  constructor(app) {
    Object.assign(this, { app, channel: app.channel, hello: app.hello, state: app.state, turn: 0, newest: new Map() });
    const { state, hello } = this;
    this.board = new Board({
      begin: () => state.keep(),
      change: (cells) => state.set({ cells }),
      end: () => this.ask(),
      point: () => this.describe(true),
    });
    this.models = new Models(hello, (model) => state.set({ model }));
    this.work = new Work(app.channel, app.say);
    this.element = h("section", { className: "bench", "aria-label": "Bench" }, this.left(), this.right());
    state.on(["grid", "cells", "history"], () => this.refresh());
    state.on(["grid", "cells", "image", "baseline", "target"], () => this.ask());
    state.on(["image", "baseline", "model"], () => this.look());
    state.on(["model"], () => this.models.select(state.get("model")));
    state.on(["target", "image", "model"], () => this.fillTargets());
  }

  left() {
    const { state, hello } = this;
    const sides = [7, 14, 28].map((side) => ({ value: side, text: `${side}×${side}`, title: `${side * side} cells` }));
    this.grids = choice("Grid", [...sides, { value: hello.brush, text: "Brush", title: "Paint freely" }], state.get("grid"), (grid) => this.changeGrid(grid));
    this.size = h("input", { type: "range", min: 1, max: 8, value: 3, "aria-label": "Width of the brush", on: { input: () => this.refresh() } });
    this.sizeBox = labeled("Width", this.size);
    this.baseline = select("What shows where cells are hidden", hello.baselines.map((name) => [name, name]), state.get("baseline"), (baseline) => state.set({ baseline }));
    this.plain = h("input", { type: "checkbox", on: { change: () => { this.board.plain = this.plain.checked; this.board.draw(); } } });
    this.count = h("span", { className: "count" });
    this.undo = button("Undo", () => state.undo(), { title: "Z" });
    this.redo = button("Redo", () => state.redo(), { title: "Shift+Z" });
    this.told = h("div", { className: "unseen", role: "status", "aria-live": "polite" });
    return h("div", { className: "left" },
      h("div", { className: "tools" }, this.grids.element, this.sizeBox, labeled("Hidden", this.baseline.element)),
      h("div", { className: "frame" }, this.board.canvas),
      h("div", { className: "tools below" }, this.count, h("span", { className: "grow" }),
        button("All", () => this.put(allCells(state.get("grid"))), { title: "Show all cells (A)" }),
        button("None", () => this.put(noCells(state.get("grid"))), { title: "Hide all cells (N)" }),
        button("Invert", () => this.invert(), { title: "I" }), this.undo, this.redo),
      h("div", { className: "tools foot" },
        h("label", { className: "check" }, this.plain, "Hidden cells as the model sees them"),
        h("p", { className: "quiet hint", id: "board-help" }, "Click or drag. Arrows and space. A all, N none, I invert, Z undo, [ ] images.")),
      this.told);
  }

  right() {
    const { state } = this;
    this.target = select("Class asked about", [["", "What each model predicts"]], "", (target) => this.chooseTarget(target));
    this.latency = h("span", { className: "quiet latency", title: "From click to the last answer" });
    this.lead = h("strong", { className: "lead" });
    this.verdict = h("h2", { className: "verdict" }, "…");
    const act = (kind, text, title) => button(text, () => this.act(kind, text), { title });
    this.actions = [
      act("find", "Find smallest set", "The smallest set that is enough, from what is shown"),
      act("reduce", "Remove needless", "Take out all cells that are not needed"),
      act("next", "Next explanation", "The next minimal sufficient explanation"),
    ];
    this.sharing = h("details", { className: "menu" }, h("summary", { className: "button" }, "Share"),
      h("div", { className: "items" },
        button("Copy link", () => this.copyLink()),
        button("Save SVG", () => this.save("svg")),
        button("Save PNG", () => this.save("png"))));
    return h("div", { className: "right" },
      h("div", { className: "tools" }, labeled("Class", this.target.element), h("span", { className: "grow" }), this.latency, this.sharing),
      this.verdict,
      h("p", { className: "quiet caption" }, "What is left of each model’s confidence in its class; from 90 % on, what is shown is enough."),
      this.models.element,
      h("div", { className: "tools acts" }, h("span", {}, "For ", this.lead), ...this.actions),
      this.work.element);
  }

  start() {
    this.models.select(this.state.get("model"));
    this.refresh();
    this.look();
    this.fillTargets();
    this.ask();
  }

  get question() {
    const { state } = this;
    const data = { image: state.get("image"), grid: state.get("grid"), cells: packCells(state.get("cells")), baseline: state.get("baseline") };
    return state.get("target") ? { ...data, target: state.get("target") } : data;
  }

  refresh() {
    const { state, board } = this;
    const [grid, cells] = [state.get("grid"), state.get("cells")];
    const brushing = grid === this.hello.brush;
    board.brush = brushing ? Number(this.size.value) : 0;
    this.sizeBox.hidden = !brushing;
    this.grids.set(grid);
    this.baseline.set(state.get("baseline"));
    if (!board.stroke) board.show({ grid, cells });
    const count = countOf(cells);
    this.count.textContent = brushing ? `${percent(count / cells.length)} shown` : `${count} of ${counted(cells.length, "cell")} shown`;
    this.undo.disabled = !state.past.length;
    this.redo.disabled = !state.future.length;
    this.lead.textContent = state.get("model");
    for (const one of this.actions) one.disabled = brushing;
  }

  // Ask all models; the newest question counts, and answers to older ones are shown only until it is answered.
  ask() {
    cancelAnimationFrame(this.asking);
    const turn = ++this.turn; // from now on, what comes in is an answer to an older question
    this.asking = requestAnimationFrame(async () => {
      const began = performance.now();
      const image = this.state.get("image");
      try {
        const all = await this.channel.ask("ask", this.question, ({ model, ...answer }) => {
          if (this.state.get("image") !== image || (this.newest.get(model) || 0) > turn) return;
          this.newest.set(model, turn);
          this.models.answer(model, answer);
          this.verdict.textContent = this.words;
        });
        if (all && turn === this.turn) {
          this.latency.textContent = `${Math.round(performance.now() - began)} ms`;
          if (!this.board.stroke) this.app.root.dataset.answered = packCells(this.state.get("cells"));
          this.describe();
        }
      } catch (error) {
        if (error.kind !== "Lost") this.app.say(error.message, true);
      }
    });
  }

  async look() {
    const { state } = this;
    const ticket = (this.looking = {}); // of answers, the newest question's counts
    this.lead.textContent = state.get("model");
    try {
      const views = await this.channel.ask("views", { image: state.get("image"), model: state.get("model"), baseline: state.get("baseline") });
      if (!views || ticket !== this.looking) return;
      this.views = views;
      await this.board.load(views.shown, views.hidden);
      this.fillTargets();
      this.app.seen(this.board.pictures);
    } catch (error) {
      if (error.kind === "Lost" || ticket !== this.looking) return;
      this.app.say(error.message, true);
      this.board.clear(); // else the image before would stand above what is said of this one
      this.app.seen(null);
    }
  }

  fillTargets() {
    const chosen = this.state.get("target");
    const likely = (this.views?.top || []).map(({ label, asked, confidence }) => [asked, `${label}, ${percent(confidence)}`]);
    const entries = [["", "What each model predicts"], ...likely];
    if (chosen && !likely.some(([asked]) => asked === chosen)) entries.push([chosen, chosen]);
    if (this.hello.labels.length > likely.length) entries.push(["…", "Another class…"]);
    this.target.fill(entries, chosen || "");
  }

  chooseTarget(target) {
    if (target !== "…") {
      this.state.set({ target });
      return;
    }
    this.app.pick("Which class?", this.hello.labels, (label) => { this.state.set({ target: label }); this.fillTargets(); });
    this.fillTargets();
  }

  put(cells, grid = this.state.get("grid")) {
    if (grid === this.state.get("grid") && sameCells(cells, this.state.get("cells"))) return;
    this.state.keep();
    this.state.set({ grid, cells });
    this.refresh();
  }

  putList(list, grid) {
    this.put(fromList(list, grid), grid);
  }

  invert() {
    this.put(this.state.get("cells").map((cell) => 1 - cell));
  }

  changeGrid(grid) {
    const { state } = this;
    if (grid !== state.get("grid")) this.put(regrid(state.get("cells"), state.get("grid"), grid), grid);
  }

  async act(kind, title) {
    const { state } = this;
    const [image, model] = [state.get("image"), state.get("model")];
    const found = await this.work.run(kind, { ...this.question, model }, `${title}: ${model}`);
    if (!found || image !== state.get("image")) return;
    if (!found.cells) {
      this.app.say(found.why);
      return;
    }
    this.putList(found.cells, found.grid);
    const which = found.count ? `Explanation ${found.number} of ${found.count}: ` : "";
    this.app.say(`${which}${counted(found.cells.length, "cell")}, ${percent(found.ratio)} of the confidence of ${model}.`);
  }

  get words() {
    const { enough } = this.models;
    const all = this.hello.models.length;
    if (all === 1) return enough ? "This is enough." : "This is not enough.";
    if (!enough) return all === 2 ? "Enough for neither model." : `Enough for none of ${all} models.`;
    return enough === all ? `Enough for ${all === 2 ? "both" : `all ${all}`} models.` : `Enough for ${enough} of ${all} models.`;
  }

  // In words, for those who listen.
  describe(cell = false) {
    const { board, models } = this;
    const here = cell && board.cursor !== null
      ? `Row ${Math.floor(board.cursor / board.grid) + 1}, column ${(board.cursor % board.grid) + 1}, ${board.cells[board.cursor] ? "shown" : "hidden"}. ` : "";
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      this.told.textContent = `${here}${countOf(board.cells)} of ${board.cells.length} cells shown; enough for ${models.enough} of ${this.hello.models.length} models.`;
    }, cell ? 50 : 400);
  }

  key(event) {
    const { state } = this;
    const actions = {
      a: () => this.put(allCells(state.get("grid"))), n: () => this.put(noCells(state.get("grid"))), i: () => this.invert(),
      z: () => state.undo(), Z: () => state.redo(), "[": () => this.app.strip.step(-1), "]": () => this.app.strip.step(1),
    };
    const digit = Number.parseInt(event.key, 10);
    if (digit >= 1 && digit <= this.hello.models.length) state.set({ model: this.hello.models[digit - 1].name });
    else if (actions[event.key]) actions[event.key]();
    else return;
    event.preventDefault();
  }

  async copyLink() {
    this.sharing.open = false;
    const link = this.app.link.whole(this.state.text());
    try {
      await navigator.clipboard.writeText(link);
      this.app.say("The link is copied. It works in browsers that have opened this server’s own link once.");
    } catch {
      this.app.say(link);
    }
  }

  async save(format) {
    this.sharing.open = false;
    const rows = [...this.models.answers].filter(([, answer]) => !answer.error)
      .map(([model, { label, ratio, confidence }]) => ({ model, label, ratio, confidence }));
    try {
      const card = await this.channel.ask("card", { ...this.question, model: this.state.get("model"), rows, format });
      if (card) download(`suffice-bench.${format}`, card[format], "image/svg+xml");
    } catch (error) {
      this.app.say(error.message, true);
    }
  }

  get shown() {
    return listOf(this.state.get("cells"));
  }
}
