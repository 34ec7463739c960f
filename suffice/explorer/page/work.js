// One piece of long work at a time: how far it is, and a way to call it off.

import { button, h } from "./dom.js";

export class Work {
  constructor(channel, say) {
    Object.assign(this, { channel, say, id: null });
    this.bar = h("progress", { max: 1, "aria-label": "Progress" });
    this.text = h("span", { className: "quiet" });
    this.stop = button("Cancel", () => this.cancel(), { className: "button small" });
    this.element = h("div", { className: "work", role: "status", hidden: true }, this.bar, this.text, this.stop);
  }

  get busy() {
    return this.id !== null;
  }

  cancel() {
    if (this.id !== null) this.channel.cancel(this.id).catch(() => {});
  }

  // The answer, or null where it was called off or failed; what failed is said.
  async run(kind, data, title) {
    this.cancel();
    const asked = this.channel.ask(kind, data, (part) => {
      if (this.id !== asked.id) return;
      if (part.share === null) this.bar.removeAttribute("value");
      else this.bar.value = part.share;
      this.text.textContent = `${title} · ${part.text.split(" · ").filter((word) => !word.includes("images")).join(" · ")}`;
    });
    this.id = asked.id;
    this.bar.removeAttribute("value");
    this.text.textContent = title;
    this.element.hidden = false;
    try {
      return await asked;
    } catch (error) {
      this.say(error.message, true);
      return null;
    } finally {
      if (this.id === asked.id) {
        this.id = null;
        this.element.hidden = true;
      }
    }
  }
}
