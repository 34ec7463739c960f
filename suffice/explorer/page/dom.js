// Elements in few words. Texts are always set as text, never as markup.

export function h(name, props = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") {
      for (const [event, handler] of Object.entries(value)) made.addEventListener(event, handler);
    } else if (key in made && !["list", "form", "type", "role"].includes(key)) {
      made[key] = value;
    } else {
      made.setAttribute(key, value === true ? "" : value);
    }
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function s(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function button(text, action, props = {}) {
  return h("button", { type: "button", className: "button", on: { click: action }, ...props }, text);
}

// A row of buttons of which one is chosen.
export function choice(label, options, chosen, choose) {
  const group = h("div", { className: "choice", role: "radiogroup", "aria-label": label });
  const buttons = options.map(({ value, text, title }) =>
    h("button", { type: "button", role: "radio", title: title || "", on: { click: () => choose(value) } }, text));
  const set = (value) => buttons.forEach((one, i) => {
    const on = options[i].value === value;
    one.setAttribute("aria-checked", String(on));
    one.tabIndex = on ? 0 : -1;
  });
  group.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const at = buttons.indexOf(document.activeElement);
    const next = (at + step + buttons.length) % buttons.length;
    choose(options[next].value);
    buttons[next].focus();
  });
  group.append(...buttons);
  set(chosen);
  return { element: group, set };
}

export function select(label, options, chosen, choose) {
  const made = h("select", { "aria-label": label, on: { change: () => choose(made.value) } });
  const fill = (entries, value) => {
    made.replaceChildren(...entries.map(([key, text]) => h("option", { value: key }, text)));
    made.value = value;
  };
  fill(options, chosen);
  return { element: made, fill, set: (value) => { made.value = value; } };
}

export function labeled(text, element) {
  return h("label", { className: "labeled" }, h("span", {}, text), element);
}

export function percent(ratio) {
  if (ratio === null || !Number.isFinite(ratio)) return "–";
  const value = 100 * ratio;
  if (value > 0 && value < 1) return "<1 %";
  if (value > 99 && value < 100) return ">99 %";
  return `${Math.round(value)} %`;
}

export function counted(count, noun) {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

// Saves text or a data URI under a name.
export function download(name, content, type) {
  const href = content.startsWith("data:") ? content : URL.createObjectURL(new Blob([content], { type }));
  const link = h("a", { href, download: name });
  link.click();
  if (!content.startsWith("data:")) setTimeout(() => URL.revokeObjectURL(href), 1000);
}
