// Sets of cells of a grid: one byte a cell in memory, one bit a cell in links and messages.

export function noCells(grid) {
  return new Uint8Array(grid * grid);
}

export function allCells(grid) {
  return new Uint8Array(grid * grid).fill(1);
}

export function fromList(list, grid) {
  const cells = noCells(grid);
  for (const cell of list) if (cell >= 0 && cell < cells.length) cells[cell] = 1;
  return cells;
}

export function listOf(cells) {
  const list = [];
  for (let i = 0; i < cells.length; i++) if (cells[i]) list.push(i);
  return list;
}

export function countOf(cells) {
  let count = 0;
  for (let i = 0; i < cells.length; i++) count += cells[i];
  return count;
}

// The bits, the lowest first, in the letters of base64 that URLs take.
export function packCells(cells) {
  const bytes = new Uint8Array(Math.ceil(cells.length / 8));
  for (let i = 0; i < cells.length; i++) if (cells[i]) bytes[i >> 3] |= 1 << (i & 7);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

export function unpackCells(text, grid) {
  try {
    const letters = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
    const cells = noCells(grid);
    if (letters.length !== Math.ceil(cells.length / 8)) return null;
    for (let i = 0; i < cells.length; i++) cells[i] = (letters.charCodeAt(i >> 3) >> (i & 7)) & 1;
    return cells;
  } catch {
    return null;
  }
}

// The same region on another grid: a cell is shown where at least half of it was.
export function regrid(cells, from, to) {
  if (from === to) return cells.slice();
  const made = noCells(to);
  const steps = Math.max(1, Math.ceil(from / to)) * 2;
  for (let row = 0; row < to; row++) {
    for (let column = 0; column < to; column++) {
      let shown = 0;
      for (let a = 0; a < steps; a++) {
        for (let b = 0; b < steps; b++) {
          const y = Math.floor(((row + (a + 0.5) / steps) / to) * from);
          const x = Math.floor(((column + (b + 0.5) / steps) / to) * from);
          shown += cells[y * from + x];
        }
      }
      made[row * to + column] = 2 * shown >= steps * steps ? 1 : 0;
    }
  }
  return made;
}

export function sameCells(a, b) {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}
