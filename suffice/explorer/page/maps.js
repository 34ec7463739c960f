// Maps by any method that fits, as evidence by a threshold, beside the curves that judge them.

import { Board } from "./board.js";
import { noCells } from "./cells.js";
import { mapPixels } from "./colors.js";
import { button, h, labeled, percent, s, select } from "./dom.js";
import { Work } from "./work.js";

const KEPT_MAPS = 60;
const [WIDE, HIGH, LEFT, TOP, FOOT] = [520, 270, 44, 12, 44];

export class Maps {
  constructor(app) {
    Object.assign(this, { app, state: app.state, hello: app.hello, methods: new Map(), found: new Map() });
    this.work = new Work(app.channel, app.say);
    this.board = new Board({ begin() {}, change() {}, end() {} });
    this.board.down = () => {}; // a picture to look at
    this.board.key = () => {};
    this.board.move = () => {};
    this.board.canvas.setAttribute("aria-label", "Image under its map");
    this.board.canvas.setAttribute("role", "img");
    this.board.canvas.removeAttribute("aria-describedby");
    this.board.canvas.tabIndex = -1;
    this.board.grid = 1;
    this.board.cells = new Uint8Array(1).fill(1);
    this.board.overlay = (pen, width, height) => this.drawMap(pen, width, height);
    this.model = select("Model", this.hello.models.map(({ name }) => [name, name]), this.state.get("model"), (model) => this.state.set({ model }));
    this.method = select("Method", [], "", (method) => this.state.set({ method }));
    this.opacity = h("input", { type: "range", min: 0, max: 100, value: 70, "aria-label": "Opacity of the map", on: { input: () => this.board.draw() } });
    this.share = h("input", { type: "range", min: 0, max: 100, value: 10, "aria-label": "Share of the image with the highest values", on: { input: () => this.move() } });
    this.shareText = h("output", {}, "top 10 %");
    this.cut = h("input", { type: "checkbox", on: { change: () => this.board.draw() } });
    this.compute = button("Compute", () => this.run(), { className: "button strong" });
    this.toBench = button("Put on the bench", () => this.put(), { title: "The cells with the highest values, so many of them" });
    this.chart = h("div", { className: "chart" });
    this.said = h("p", { className: "quiet caption" });
    this.element = h("section", { className: "maps", "aria-label": "Maps" },
      h("div", { className: "left" },
        h("div", { className: "tools" }, labeled("Model", this.model.element), labeled("Method", this.method.element), this.compute),
        h("div", { className: "frame" }, this.board.canvas),
        h("div", { className: "tools below" }, labeled("Opacity", this.opacity), h("label", { className: "check" }, this.cut, "Only the top"),
          labeled("Threshold", this.share), this.shareText, h("span", { className: "grow" }), this.toBench)),
      h("div", { className: "right" }, this.work.element, this.said, this.chart));
    this.state.on(["model"], () => this.open());
    this.state.on(["method", "image", "target", "baseline"], () => this.refresh());
    app.watchers.push((pictures) => { this.board.pictures = pictures; this.refresh(); });
  }

  async open() {
    if (this.element.hidden) return;
    const model = this.state.get("model");
    this.model.set(model);
    this.board.pictures = this.app.pictures || null;
    if (!this.methods.has(model)) {
      const { methods } = await this.app.channel.ask("methods", { model });
      this.methods.set(model, methods);
    }
    if (model !== this.state.get("model")) return;
    const methods = this.methods.get(model);
    const usual = ["grad-cam", "cgw2", "gradient"].find((name) => methods.some((one) => one.name === name)) || methods[0].name;
    if (!methods.some(({ name }) => name === this.state.get("method"))) this.state.set({ method: usual });
    this.method.fill(methods.map(({ name, slow }) => [name, slow ? `${name} (takes a while)` : name]), this.state.get("method"));
    this.refresh();
  }

  key() {
    return ["model", "method", "image", "target"].map((name) => this.state.get(name)).join("\n");
  }

  get map() {
    return this.found.get(this.key());
  }

  // Those over the baseline of the bench: maps do not depend on it.
  get curves() {
    return this.map?.curves.get(this.state.get("baseline"));
  }

  refresh() {
    if (this.element.hidden) return;
    const { map } = this;
    this.method.set(this.state.get("method"));
    this.toBench.disabled = this.share.disabled = !map;
    const which = map && `${this.state.get("method")} of ${map.label} by ${this.state.get("model")}.`;
    this.said.textContent = !map ? "Choose a method and compute its map; its insertion and deletion curves are drawn beside it."
      : this.curves ? `${which} Move over the curves, or move the threshold: the image shows what has been inserted by then.`
        : `${which} Its curves over the baseline ${this.state.get("baseline")} are not there yet; Compute makes them.`;
    this.drawCurves();
    this.board.draw();
  }

  async run() {
    const { state } = this;
    const key = this.key();
    const data = { image: state.get("image"), grid: 7, baseline: state.get("baseline"), model: state.get("model"), method: state.get("method") };
    if (state.get("target")) data.target = state.get("target");
    const found = await this.work.run("map", data, `${state.get("method")}: ${state.get("model")}`);
    if (!found) return;
    const bytes = Uint8Array.from(atob(found.values), (letter) => letter.charCodeAt(0));
    const values = new Float32Array(bytes.buffer);
    const order = Array.from(values.keys()).sort((a, b) => values[b] - values[a]);
    const rank = new Float32Array(values.length);
    order.forEach((pixel, i) => { rank[pixel] = (i + 0.5) / values.length; });
    const map = { label: found.label, width: found.width, height: found.height, values, rank, curves: this.found.get(key)?.curves || new Map() };
    this.found.set(key, map);
    if (this.found.size > KEPT_MAPS) this.found.delete(this.found.keys().next().value);
    this.refresh();
    const curves = await this.work.run("curves", data, "Insertion and deletion");
    if (curves) map.curves.set(data.baseline, curves);
    this.refresh();
  }

  move() {
    this.shareText.textContent = `top ${this.share.value} %`;
    this.cut.checked = true;
    this.board.draw();
    this.drawCursor();
  }

  drawMap(pen, width, height) {
    const { map } = this;
    if (!map) return;
    const small = document.createElement("canvas");
    [small.width, small.height] = [map.width, map.height];
    const brush = small.getContext("2d");
    const pixels = mapPixels(map.values, this.hello.warm, this.hello.cool, this.opacity.value / 100);
    brush.putImageData(new ImageData(pixels, map.width, map.height), 0, 0);
    pen.imageSmoothingEnabled = true;
    pen.drawImage(small, 0, 0, width, height);
    if (!this.cut.checked || !this.board.pictures) return;
    // What lies below the threshold is veiled.
    const share = this.share.value / 100;
    const veil = brush.createImageData(map.width, map.height);
    map.rank.forEach((rank, i) => veil.data.set([20, 24, 29, rank < share ? 0 : 205], 4 * i));
    brush.putImageData(veil, 0, 0);
    pen.imageSmoothingEnabled = map.width >= 28;
    pen.drawImage(small, 0, 0, width, height);
  }

  // So many of the cells of the bench's grid, those with the highest mean.
  put() {
    const { map, state } = this;
    const grid = state.get("grid");
    const [sums, counts] = [new Float64Array(grid * grid), new Float64Array(grid * grid)];
    const fine = Math.max(grid, map.width, map.height);
    for (let y = 0; y < fine; y++) {
      for (let x = 0; x < fine; x++) {
        const cell = Math.floor((y * grid) / fine) * grid + Math.floor((x * grid) / fine);
        sums[cell] += map.values[Math.floor((y * map.height) / fine) * map.width + Math.floor((x * map.width) / fine)];
        counts[cell] += 1;
      }
    }
    const means = sums.map((sum, i) => sum / (counts[i] || 1));
    const order = Array.from(means.keys()).sort((a, b) => means[b] - means[a]);
    const cells = noCells(grid);
    for (const cell of order.slice(0, Math.max(1, Math.round((grid * grid * this.share.value) / 100)))) cells[cell] = 1;
    state.set({ tab: "bench" });
    this.app.bench.put(cells, grid);
  }

  drawCurves() {
    const { curves } = this;
    if (!curves) {
      this.chart.replaceChildren();
      return;
    }
    const x = (value) => LEFT + value * (WIDE - LEFT - 90);
    const y = (value) => TOP + (1 - value) * (HIGH - TOP - FOOT);
    this.x = x;
    const svg = s("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", class: "curves",
      "aria-label": `Insertion ${curves.insertion.area.toFixed(3)}, deletion ${curves.deletion.area.toFixed(3)}` });
    for (const value of [0, 0.25, 0.5, 0.75, 1]) {
      svg.append(s("path", { d: `M${x(0)} ${y(value)}H${x(1)}`, class: "rule" }));
      svg.append(label(x(0) - 8, y(value) + 4, percent(value), "end"), label(x(value), y(0) + 18, percent(value), "middle"));
    }
    svg.append(label(x(0.5), HIGH - 6, "share of the image inserted, or deleted", "middle"));
    const ends = Object.entries(curves).map(([name, { y: values }]) => [name, y(values.at(-1))]);
    if (Math.abs(ends[0][1] - ends[1][1]) < 30) ends[0][1] = ends[1][1] + (ends[0][1] < ends[1][1] ? -30 : 30);
    for (const [name, { x: across, y: values, area }] of Object.entries(curves)) {
      const path = values.map((value, i) => `${i ? "L" : "M"}${x(across[i]).toFixed(1)} ${y(value).toFixed(1)}`).join("");
      const end = Math.min(Math.max(ends.find(([one]) => one === name)[1], TOP + 8), y(0) - 14);
      svg.append(s("path", { d: path, class: `curve ${name}` }));
      svg.append(label(x(1) + 8, end, name, "start", `name ${name}`), label(x(1) + 8, end + 14, area.toFixed(3), "start"));
    }
    this.cursor = s("path", { class: "cursor" });
    svg.append(this.cursor);
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const at = (((event.clientX - box.left) / box.width) * WIDE - LEFT) / (WIDE - LEFT - 90);
      if (at < 0 || at > 1) return;
      this.share.value = Math.round(100 * at);
      this.move();
    });
    this.chart.replaceChildren(svg);
    this.drawCursor();
  }

  drawCursor() {
    if (this.cursor && this.x) this.cursor.setAttribute("d", `M${this.x(this.share.value / 100)} ${TOP}V${HIGH - FOOT}`);
  }

  repaint() {
    this.board.draw();
  }
}

function label(x, y, text, anchor, name = "") {
  return s("text", { x, y, "text-anchor": anchor, class: name }, text);
}
