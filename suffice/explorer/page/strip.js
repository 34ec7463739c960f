// The images there are, a page of them at a time, and one's own by file or drop.

import { button, h } from "./dom.js";

const AT_ONCE = 24;

export class Strip {
  constructor(channel, hello, state, say) {
    Object.assign(this, { channel, hello, state, say, offset: 0, own: [] });
    this.list = h("div", { className: "pictures", role: "listbox", "aria-label": "Images", "aria-orientation": "horizontal" });
    this.before = button("‹", () => this.page(-AT_ONCE), { className: "button round", ariaLabel: "Earlier images" });
    this.after = button("›", () => this.page(AT_ONCE), { className: "button round", ariaLabel: "Later images" });
    this.where = h("span", { className: "quiet" });
    const file = h("input", { type: "file", accept: "image/*", hidden: true, on: { change: () => { this.take(file.files); file.value = ""; } } });
    this.element = h("section", { className: "strip", "aria-label": "Images" },
      h("div", { className: "strip-head" }, this.where, h("span", { className: "grow" }), file,
        button("Own image…", () => file.click(), { title: "Or drop a file anywhere on the page" }), this.before, this.after),
      this.list);
    state.on(["image"], () => this.mark());
  }

  async start() {
    const index = Number.parseInt(this.state.get("image"), 10);
    if (Number.isInteger(index)) this.offset = Math.max(0, index - (index % AT_ONCE));
    await this.load();
  }

  async page(step) {
    this.offset = Math.min(Math.max(0, this.offset + step), Math.max(0, this.hello.images - 1));
    await this.load();
  }

  async load() {
    const found = await this.channel.ask("images", { offset: this.offset, count: AT_ONCE });
    if (!found) return;
    this.images = found.images;
    this.fill();
  }

  fill() {
    const shown = [...this.own, ...(this.images || [])];
    this.list.replaceChildren(...shown.map((image) => this.item(image)));
    const last = Math.min(this.offset + AT_ONCE, this.hello.images);
    this.where.textContent = this.hello.images ? `Images ${this.offset + 1} to ${last} of ${this.hello.images.toLocaleString("en-US")}` : "";
    this.before.disabled = this.offset === 0;
    this.after.disabled = last >= this.hello.images;
    this.mark();
  }

  item(image) {
    const label = image.label === null ? image.name : `${image.name}, ${image.label}`;
    const inside = image.thumbnail ? h("img", { src: image.thumbnail, alt: "", draggable: false }) : h("span", { className: "unreadable" }, "?");
    const made = h("button", { type: "button", role: "option", title: label, ariaLabel: label, "data-image": image.key,
      on: { click: () => this.state.set({ image: image.key }) } }, inside);
    return made;
  }

  mark() {
    for (const item of this.list.children) item.setAttribute("aria-selected", String(item.dataset.image === this.state.get("image")));
  }

  step(by) {
    const keys = [...this.list.children].map((item) => item.dataset.image);
    const at = keys.indexOf(this.state.get("image"));
    const next = keys[at + by];
    if (next !== undefined) this.state.set({ image: next });
  }

  async take(files) {
    for (const file of files) {
      if (file.size > this.hello.limits.upload_bytes) {
        this.say(`${file.name} has ${(file.size / 2 ** 20).toFixed(0)} MB; up to ${(this.hello.limits.upload_bytes / 2 ** 20).toFixed(0)} MB are taken.`, true);
        continue;
      }
      try {
        const image = await this.channel.upload(file);
        this.own = [image, ...this.own.filter((one) => one.key !== image.key)];
        this.fill();
        this.state.set({ image: image.key, tab: this.state.get("tab") === "study" ? "bench" : this.state.get("tab") });
      } catch (error) {
        this.say(error.message, true);
      }
    }
  }
}
