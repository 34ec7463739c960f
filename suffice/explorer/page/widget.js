// The explorer below the cell of a notebook: the same parts, over the channel of a widget.

import { App } from "./app.js";
import { Channel } from "./channel.js";
import { h } from "./dom.js";

async function render({ model, el }) {
  const channel = new Channel((message) => model.send(message));
  const hear = (message) => channel.receive(message);
  model.on("msg:custom", hear);
  channel.upload = async (file) => {
    const bytes = new Uint8Array(await file.arrayBuffer());
    let letters = "";
    for (let i = 0; i < bytes.length; i += 0x8000) letters += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
    return channel.ask("upload", { name: file.name, content: btoa(letters) });
  };
  channel.loadCharts = async () => {
    const { script } = await channel.ask("charts");
    const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    await import(address);
    URL.revokeObjectURL(address);
  };
  // JupyterLab has keys of its own, among them A, N and Z; they are not meant while one is in here.
  const root = h("div", { className: "suffice in-notebook", "data-lm-suppress-shortcuts": "true" });
  root.addEventListener("keydown", (event) => event.stopPropagation());
  el.append(root);
  const app = new App(root, channel, null);
  app.start(model.get("given")).catch((error) => {
    root.replaceChildren(h("p", { className: "failed" }, `The explorer cannot start: ${error.message}`));
  });
  return () => model.off("msg:custom", hear);
}

export default { render };
