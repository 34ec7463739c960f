// The page of suffice serve.

import { App } from "./app.js";
import { openSocket } from "./channel.js";
import { h } from "./dom.js";
import { pageLink } from "./state.js";

const root = document.getElementById("explorer");
let app = null;
let lost = false;

const channel = openSocket((open) => {
  if (open && lost && app) location.reload(); // another server, perhaps, with other models
  lost = !open;
  if (lost && app) app.say("The connection to suffice serve is lost; trying again …", true);
});

app = new App(root, channel, pageLink());
app.start().catch((error) => {
  root.replaceChildren(h("p", { className: "failed" }, `The explorer cannot start: ${error.message}`));
});
