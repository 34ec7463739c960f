// The image under its grid: click, drag or use the keyboard to show and hide cells.

import { h } from "./dom.js";
import { countOf } from "./cells.js";

const SHARPEST = 96; // images of fewer pixels a side are shown with sharp pixels

export class Board {
  // `hooks`: begin() before a stroke, change(cells) while it is drawn, end() after it.
  constructor(hooks) {
    this.hooks = hooks;
    this.grid = 7;
    this.cells = new Uint8Array(49).fill(1);
    this.brush = 0; // cells around the pointer that a stroke covers
    this.plain = false; // whether hidden cells show what the model sees there, undimmed
    this.pictures = null;
    this.overlay = null;
    this.cursor = null;
    this.keyed = false;
    this.hover = null;
    this.stroke = null;
    this.canvas = h("canvas", {
      className: "board", tabIndex: 0, role: "application",
      "aria-label": "Image under a grid. Arrow keys move, space shows or hides a cell, shift and arrows paint.",
      "aria-describedby": "board-help",
    });
    this.watch();
  }

  show({ grid, cells }) {
    this.grid = grid;
    this.cells = cells;
    if (this.cursor !== null) this.cursor = Math.min(this.cursor, grid * grid - 1);
    this.draw();
  }

  // Data URIs of what a model sees, and of what it sees where cells are hidden.
  async load(shown, hidden) {
    const ticket = (this.ticket = {});
    const pictures = await Promise.all([shown, hidden].map((source) => {
      const image = new Image();
      image.src = source;
      return image.decode().then(() => image);
    }));
    if (ticket === this.ticket) {
      this.pictures = pictures;
      this.draw();
    }
  }

  clear() {
    this.ticket = this.pictures = null;
    this.draw();
  }

  watch() {
    const canvas = this.canvas;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => this.up());
    canvas.addEventListener("pointerleave", () => { this.hover = null; this.draw(); });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("focus", () => this.draw());
    canvas.addEventListener("blur", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * this.grid);
    const row = Math.floor(((event.clientY - box.top) / box.height) * this.grid);
    const last = this.grid - 1;
    return Math.min(last, Math.max(0, row)) * this.grid + Math.min(last, Math.max(0, column));
  }

  down(event) {
    if (event.button) return;
    event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    const cell = this.cellAt(event);
    this.cursor = cell;
    this.keyed = false;
    this.hooks.begin();
    this.stroke = { value: this.cells[cell] ? 0 : 1, last: cell };
    this.paint(cell, cell);
  }

  move(event) {
    const cell = this.cellAt(event);
    if (this.stroke && cell !== this.stroke.last) {
      this.paint(this.stroke.last, cell);
      this.stroke.last = cell;
    }
    if (cell !== this.hover) {
      this.hover = cell;
      this.draw();
    }
  }

  up() {
    if (!this.stroke) return;
    this.stroke = null;
    this.hooks.end();
  }

  // Give all cells between two the value of the stroke.
  paint(from, to) {
    const { grid, brush } = this;
    const cells = this.cells.slice();
    const [y0, x0, y1, x1] = [Math.floor(from / grid), from % grid, Math.floor(to / grid), to % grid];
    const steps = Math.max(Math.abs(y1 - y0), Math.abs(x1 - x0), 1);
    for (let step = 0; step <= steps; step++) {
      const y = Math.round(y0 + ((y1 - y0) * step) / steps);
      const x = Math.round(x0 + ((x1 - x0) * step) / steps);
      for (let a = -brush; a <= brush; a++) {
        for (let b = -brush; b <= brush; b++) {
          const inside = a * a + b * b <= (brush + 0.3) ** 2;
          if (inside && y + a >= 0 && y + a < grid && x + b >= 0 && x + b < grid) cells[(y + a) * grid + x + b] = this.stroke.value;
        }
      }
    }
    this.cells = cells;
    this.hooks.change(cells);
    this.draw();
  }

  key(event) {
    const { grid } = this;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    this.keyed = true; // from now on, the cell that keys act on is marked
    if (event.key === " " || event.key === "Enter") {
      event.preventDefault();
      if (this.cursor === null) this.cursor = Math.floor((grid * grid) / 2);
      this.hooks.begin();
      this.stroke = { value: this.cells[this.cursor] ? 0 : 1, last: this.cursor };
      this.paint(this.cursor, this.cursor);
      this.up();
      return;
    }
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const from = this.cursor === null ? Math.floor((grid * grid) / 2) : this.cursor;
    const row = Math.min(grid - 1, Math.max(0, Math.floor(from / grid) + step[0]));
    const column = Math.min(grid - 1, Math.max(0, (from % grid) + step[1]));
    this.cursor = row * grid + column;
    if (event.shiftKey && this.cursor !== from) {
      this.hooks.begin();
      this.stroke = { value: this.cells[from] ? 1 : 0, last: from };
      this.paint(from, this.cursor);
      this.up();
    }
    this.hooks.point?.(this.cursor);
    this.draw();
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    const { canvas, grid, cells } = this;
    const box = canvas.getBoundingClientRect();
    if (!box.width) return;
    const density = Math.min(window.devicePixelRatio || 1, 2);
    const [width, height] = [Math.round(box.width * density), Math.round(box.height * density)];
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(canvas);
    const color = (name) => style.getPropertyValue(name).trim();
    pen.fillStyle = color("--empty");
    pen.fillRect(0, 0, width, height);
    const x = (column) => Math.round((column * width) / grid);
    const y = (row) => Math.round((row * height) / grid);
    if (this.pictures) {
      const [shown, hidden] = this.pictures;
      pen.imageSmoothingEnabled = Math.max(shown.width, shown.height) > SHARPEST;
      pen.imageSmoothingQuality = "high";
      pen.drawImage(hidden, 0, 0, width, height);
      if (!this.plain) {
        pen.fillStyle = color("--veil");
        pen.fillRect(0, 0, width, height);
      }
      if (countOf(cells)) {
        pen.save();
        pen.beginPath();
        cells.forEach((on, i) => {
          const [row, column] = [Math.floor(i / grid), i % grid];
          if (on) pen.rect(x(column), y(row), x(column + 1) - x(column), y(row + 1) - y(row));
        });
        pen.clip();
        pen.drawImage(shown, 0, 0, width, height);
        pen.restore();
      }
    }
    if (this.overlay) this.overlay(pen, width, height);
    if (grid <= 28) {
      pen.strokeStyle = color("--grid");
      pen.lineWidth = density * (grid <= 14 ? 1 : 0.6);
      pen.beginPath();
      for (let i = 1; i < grid; i++) {
        pen.moveTo(x(i), 0);
        pen.lineTo(x(i), height);
        pen.moveTo(0, y(i));
        pen.lineTo(width, y(i));
      }
      pen.stroke();
    }
    this.outline(pen, x, y, color("--edge"), density);
    const focused = document.activeElement === canvas || canvas.getRootNode().activeElement === canvas;
    if (this.hover !== null && !this.stroke) this.mark(pen, this.hover, x, y, color("--edge"), 1.5 * density);
    if (focused && this.keyed && this.cursor !== null) this.mark(pen, this.cursor, x, y, color("--mark"), 2.5 * density);
  }

  // A line between what is shown and what is hidden.
  outline(pen, x, y, color, density) {
    const { grid, cells } = this;
    const on = (row, column) => row >= 0 && column >= 0 && row < grid && column < grid && cells[row * grid + column];
    pen.strokeStyle = color;
    pen.lineWidth = 1.5 * density;
    pen.lineCap = "square";
    pen.beginPath();
    for (let row = 0; row < grid; row++) {
      for (let column = 0; column < grid; column++) {
        const own = on(row, column);
        if (column + 1 < grid && own !== on(row, column + 1)) { pen.moveTo(x(column + 1), y(row)); pen.lineTo(x(column + 1), y(row + 1)); }
        if (row + 1 < grid && own !== on(row + 1, column)) { pen.moveTo(x(column), y(row + 1)); pen.lineTo(x(column + 1), y(row + 1)); }
      }
    }
    pen.stroke();
  }

  mark(pen, cell, x, y, color, width) {
    const { grid, brush } = this;
    const [row, column] = [Math.floor(cell / grid), cell % grid];
    pen.strokeStyle = color;
    pen.lineWidth = width;
    pen.beginPath();
    if (brush) pen.arc((x(column) + x(column + 1)) / 2, (y(row) + y(row + 1)) / 2, (brush + 0.5) * (x(1) - x(0)), 0, 7);
    else pen.rect(x(column), y(row), x(column + 1) - x(column), y(row + 1) - y(row));
    pen.stroke();
  }
}

// A small picture of a region, for lists.
export function thumbnail(pictures, grid, cells, size) {
  const canvas = h("canvas", { width: 2 * size, height: 2 * size, className: "thumb", ariaHidden: "true" });
  const board = Object.assign(Object.create(Board.prototype), {
    canvas, grid, cells, pictures, plain: false, overlay: null, cursor: null, hover: null, stroke: null, brush: 0,
  });
  requestAnimationFrame(() => board.drawNow());
  return canvas;
}
