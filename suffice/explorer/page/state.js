// What is looked at, in one place: those who care are told of changes, and the link of the page says all of it.

import { allCells, packCells, unpackCells } from "./cells.js";

const WORDS = ["tab", "image", "model", "baseline", "target", "method", "table", "filters", "sort", "bins"];
const MOST_STEPS = 200;

export class State {
  constructor(usual, link = null) {
    this.usual = { ...usual };
    this.values = { ...usual };
    this.listeners = [];
    this.past = [];
    this.future = [];
    this.link = link;
    if (link) {
      this.read(link.get());
      link.listen(() => { if (this.read(link.get())) this.tell(Object.keys(this.values)); });
    }
  }

  get(name) {
    return this.values[name];
  }

  set(changes) {
    const changed = Object.keys(changes).filter((name) => this.values[name] !== changes[name]);
    if (!changed.length) return;
    Object.assign(this.values, changes);
    this.tell(changed);
  }

  on(names, listener) {
    this.listeners.push([names, listener]);
  }

  tell(changed) {
    for (const [names, listener] of this.listeners) if (names.some((name) => changed.includes(name))) listener(changed);
    if (this.link) this.link.put(this.text());
  }

  // Steps that can be taken back: the grid and its cells.
  keep() {
    this.past.push({ grid: this.values.grid, cells: this.values.cells });
    if (this.past.length > MOST_STEPS) this.past.shift();
    this.future = [];
  }

  undo() {
    this.move(this.past, this.future);
  }

  redo() {
    this.move(this.future, this.past);
  }

  move(from, to) {
    const step = from.pop();
    if (!step) return;
    to.push({ grid: this.values.grid, cells: this.values.cells });
    this.set(step);
    this.tell(["history"]);
  }

  text() {
    const words = new URLSearchParams();
    for (const name of WORDS) {
      const value = this.values[name];
      if (value && value !== this.usual[name]) words.set(name, value);
    }
    const { grid, cells } = this.values;
    if (grid !== this.usual.grid) words.set("grid", grid);
    if (cells.some((cell) => !cell)) words.set("cells", packCells(cells));
    return words.toString();
  }

  // Takes what a link says; returns whether anything is new.
  read(text) {
    if (text === this.text()) return false;
    const words = new URLSearchParams(text);
    const grid = Math.min(56, Math.max(1, Number.parseInt(words.get("grid"), 10) || this.usual.grid));
    const cells = words.has("cells") ? unpackCells(words.get("cells"), grid) : null;
    const read = { grid, cells: cells || allCells(grid) };
    for (const name of WORDS) read[name] = words.get(name) || this.usual[name];
    Object.assign(this.values, read);
    return true;
  }
}

// The part of the address of this page behind the #.
export function pageLink() {
  let own = null;
  let timer = 0;
  return {
    get: () => location.hash.slice(1),
    put: (text) => {
      own = text;
      clearTimeout(timer); // browsers slow down pages that change their address too often
      timer = setTimeout(() => history.replaceState(null, "", text ? `#${text}` : location.pathname), 150);
    },
    listen: (hear) => window.addEventListener("hashchange", () => { if (location.hash.slice(1) !== own) hear(); }),
    whole: (text) => `${location.origin}${location.pathname}${text ? `#${text}` : ""}`,
  };
}
