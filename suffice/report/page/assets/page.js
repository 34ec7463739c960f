// What the page does by itself: charts, sorting, copying, enlarging, light and dark. Nothing is fetched.
(() => {
  "use strict";
  const root = document.documentElement;
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const one = (what, within = document) => within.querySelector(what);
  const looks = JSON.parse(one("#looks").textContent);

  // Light and dark: as the system has it, until the switch says otherwise.
  const system = matchMedia("(prefers-color-scheme: dark)");
  const kept = (() => { try { return localStorage.getItem("suffice-theme"); } catch { return null; } })();
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  let printing = false;  // paper is light
  const isDark = () => !printing && (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const button = one(".theme");
  const named = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Show the page in ${isDark() ? "light" : "dark"} colors`);
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("suffice-theme", root.dataset.theme); } catch { /* then it is for this time only */ }
    recolor();
  });
  system.addEventListener("change", () => recolor());

  // Charts are drawn when they come near, so that the page opens at once.
  const specs = new Map(all("script[data-spec]").map((s) => [s.dataset.spec, JSON.parse(s.textContent)]));
  const drawn = new Map();
  const draw = async (place) => {
    const dark = isDark();
    const before = drawn.get(place);
    if (before && before.dark === dark) return before.done;
    const config = { ...(dark ? looks.dark : looks.light), background: null };
    const done = window.sufficeEmbed(place, specs.get(place.dataset.chart), {
      config, renderer: "svg", tooltip: { theme: "custom" }, downloadFileName: place.dataset.chart,
      actions: { export: true, source: false, compiled: false, editor: false },
    }).then((shown) => {
      if (before) before.done.then((old) => old && old.finalize());
      place.classList.add("drawn");
      const svg = one("svg", place);
      if (svg) { svg.setAttribute("role", "img"); svg.setAttribute("aria-label", place.dataset.alt); }
      return shown;
    }).catch((problem) => {
      place.textContent = `This chart could not be drawn: ${problem.message}`;
      console.error(problem);
    });
    drawn.set(place, { dark, done });
    return done;
  };
  const near = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) if (isIntersecting) { near.unobserve(target); draw(target); }
  }, { rootMargin: "600px" });
  all("[data-chart]").forEach((place) => near.observe(place));

  // Drawings that are not charts: ink and ground exchanged.
  const exchanged = (svg, dark) => {
    for (const element of [svg, ...all("[fill],[stroke]", svg)]) {
      for (const name of ["fill", "stroke"]) {
        const first = `data-${name}`;
        const color = element.getAttribute(first) ?? element.getAttribute(name);
        if (!color || !(color.toLowerCase() in looks.exchange)) continue;
        element.setAttribute(first, color);
        element.setAttribute(name, dark ? looks.exchange[color.toLowerCase()] : color);
      }
    }
  };
  const recolor = () => {
    named();
    [...drawn.keys()].forEach(draw);
    all(".drawing svg").forEach((svg) => exchanged(svg, isDark()));
  };
  recolor();
  window.sufficeDrawAll = () => Promise.all(all("[data-chart]").map(draw)).then((shown) => shown.length);
  const print = (now) => { printing = now; recolor(); };
  addEventListener("beforeprint", () => { print(true); window.sufficeDrawAll(); });
  addEventListener("afterprint", () => print(false));
  const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 400));
  const drawRest = () => {
    const place = all("[data-chart]").find((other) => !drawn.has(other));
    if (place) draw(place).then(() => idle(drawRest));
  };
  addEventListener("load", () => idle(drawRest));

  const status = one(".status");
  const say = (text) => {
    status.textContent = text;
    status.classList.add("on");
    setTimeout(() => status.classList.remove("on"), 1600);
  };
  const copy = async (text, what) => {
    try { await navigator.clipboard.writeText(text); } catch {
      const area = Object.assign(document.createElement("textarea"), { value: text });
      (one("dialog[open]") ?? document.body).append(area);  // what is outside an open dialog cannot be selected
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    say(`${what} copied`);
  };

  // Tables: sorted by a click on a heading, copied as they are sorted.
  const value = (row, column) => {
    const cell = row.cells[column], given = cell.dataset.value;
    return cell.classList.contains("number") ? (given === "" || given === undefined ? NaN : Number(given)) : cell.textContent.trim();
  };
  const sort = (table, column, heading) => {
    const down = heading.getAttribute("aria-sort") ? heading.getAttribute("aria-sort") === "ascending" : heading.classList.contains("number");
    all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = all("tbody tr", table).map((row) => ({ row, key: value(row, column) }));
    rows.sort((a, b) => {
      if (typeof a.key === "string") return (down ? -1 : 1) * a.key.localeCompare(b.key, undefined, { numeric: true });
      if (isNaN(a.key) || isNaN(b.key)) return isNaN(a.key) - isNaN(b.key);
      return (down ? -1 : 1) * (a.key - b.key);
    });
    const fold = Number(table.dataset.fold || 0);
    rows.forEach(({ row }, place) => { row.classList.toggle("folded", fold > 0 && place >= fold); table.tBodies[0].append(row); });
  };
  const content = (table, exact) => all("tr", table).map((row) => [...row.cells].map((cell) => {
    if (cell.closest("thead")) return cell.textContent.trim();
    return exact && cell.classList.contains("number") && cell.dataset.value ? cell.dataset.value : (cell.dataset.text ?? cell.textContent.trim());
  }));
  const asCsv = (table) => content(table, true).map((row) => row.map((text) => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text).join(",")).join("\n") + "\n";
  const LATEX = { "\\": "\\textbackslash{}", "&": "\\&", "%": "\\%", "$": "\\$", "#": "\\#", "_": "\\_", "{": "\\{", "}": "\\}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
    "±": "$\\pm$", "≥": "$\\geq$", "≤": "$\\leq$", "×": "$\\times$", "↑": "$\\uparrow$", "↓": "$\\downarrow$", "−": "$-$", "–": "--" };
  const asLatex = (table) => {
    const plain = (text) => text.replace(/[\\&%$#_{}~^±≥≤×↑↓−–]/g, (c) => LATEX[c]);
    const [head, ...rows] = content(table, false).map((row) => row.map(plain).join(" & ") + " \\\\");
    const columns = all("thead th", table).map((th) => (th.classList.contains("number") ? "r" : "l")).join("");
    return `\\begin{tabular}{${columns}}\n\\toprule\n${head}\n\\midrule\n${rows.join("\n")}\n\\bottomrule\n\\end{tabular}\n`;
  };
  for (const part of all(".table")) {
    const table = one("table", part);
    all("thead th", table).forEach((heading, column) => one("button", heading)?.addEventListener("click", () => sort(table, column, heading)));
    one("[data-copy=csv]", part)?.addEventListener("click", () => copy(asCsv(table), "CSV"));
    one("[data-copy=latex]", part)?.addEventListener("click", () => copy(asLatex(table), "LaTeX"));
    one("[data-open]", part)?.addEventListener("click", (event) => {
      const open = part.classList.toggle("open");
      event.target.textContent = open ? "Show fewer rows" : event.target.dataset.open;
      event.target.setAttribute("aria-expanded", open);
    });
  }
  all("[data-copy-text]").forEach((b) => b.addEventListener("click", () => copy(one(b.dataset.copyText).textContent, b.dataset.what)));

  // A number says where it comes from.
  const traced = one("#traced");
  document.addEventListener("click", (event) => {
    const cell = event.target.closest("td.traced");
    if (!cell || String(getSelection())) return;
    const part = cell.closest(".table"), row = cell.closest("tr");
    const fill = (text) => text.replace(/\{(\w+)\}/g, (whole, name) => row.dataset[name]?.replaceAll("'", "''") ?? whole);
    const heading = all("thead th", part)[cell.cellIndex].textContent.trim();
    one("h2", traced).textContent = `${heading} of ${row.cells[0].textContent.trim()}: ${cell.dataset.text ?? cell.textContent.trim()}`;
    one(".made", traced).innerHTML = one(".made", part).innerHTML;
    one("pre code", traced).textContent = fill(all("thead th", part)[cell.cellIndex].dataset.query);
    one(".copy", traced).textContent = "Copy the query";
    traced.showModal();
  });

  one(".copy", traced).addEventListener("click", ({ target }) => {
    copy(one("pre", traced).textContent, "Query");
    target.textContent = "Copied";  // the status line is behind the dialog
  });

  // Pictures enlarge; arrows go on to the next of the same image.
  const enlarged = one("#enlarged");
  let row = [], place = 0;
  const enlarge = () => {
    const tile = row[place];
    const picture = one("img, svg", tile).cloneNode(true);
    picture.removeAttribute("width"); picture.removeAttribute("height");
    picture.classList.toggle("graph", tile.classList.contains("drawing"));
    one(".picture", enlarged).replaceChildren(picture);
    one("h2", enlarged).textContent = tile.dataset.title;
    one(".where", enlarged).textContent = row.length > 1 ? `${place + 1} of ${row.length}` : "";
    all(".steps button", enlarged).forEach((b) => { b.hidden = row.length < 2; });
  };
  const step = (by) => { place = (place + by + row.length) % row.length; enlarge(); };
  document.addEventListener("click", (event) => {
    const tile = event.target.closest("button.tile, button.drawing");
    if (!tile) return;
    row = tile.classList.contains("tile") ? all("button.tile", tile.closest(".case")) : [tile];
    place = row.indexOf(tile);
    enlarge();
    enlarged.showModal();
  });
  enlarged.addEventListener("keydown", (event) => {
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") { step(event.key === "ArrowRight" ? 1 : -1); event.preventDefault(); }
  });
  all(".steps button", enlarged).forEach((b) => b.addEventListener("click", () => step(Number(b.dataset.step))));
  enlarged.addEventListener("close", () => row[place]?.focus());
  for (const dialog of [enlarged, traced]) {
    one(".close", dialog).addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }

  // Where one is, in the contents.
  const links = new Map(all("nav.contents a").map((a) => [a.hash.slice(1), a]));
  const here = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) {
      if (!isIntersecting) continue;
      links.forEach((a) => a.removeAttribute("aria-current"));
      links.get(target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  all("main section[id]").forEach((section) => here.observe(section));
})();
