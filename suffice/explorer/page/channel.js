// The way to what answers: a web socket on the page, the channel of a widget in a notebook.

export class Channel {
  constructor(post) {
    this.post = post;
    this.number = 0;
    this.waiting = new Map();
  }

  // Ask something; `onPart` gets what comes before the answer. The promise has `id`, to call it off with.
  ask(kind, data = {}, onPart = null) {
    const id = ++this.number;
    const promise = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject, onPart }));
    promise.id = id;
    this.post({ id, kind, data });
    return promise;
  }

  cancel(id) {
    return this.ask("cancel", { id });
  }

  receive(message) {
    const asked = this.waiting.get(message.id);
    if (!asked) return;
    if (message.part) {
      if (asked.onPart) asked.onPart(message.part);
      return;
    }
    this.waiting.delete(message.id);
    if (message.error) asked.reject(Object.assign(new Error(message.error.message), { kind: message.error.kind }));
    else if (message.dropped || message.cancelled) asked.resolve(null);
    else asked.resolve(message.data);
  }

  fail(reason) {
    for (const asked of this.waiting.values()) asked.reject(Object.assign(new Error(reason), { kind: "Lost" }));
    this.waiting.clear();
  }
}

// Opens the socket of this page, and again where it is lost; `onState` hears whether it is open.
export function openSocket(onState) {
  const address = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/live`;
  let socket = null;
  let unsent = [];
  let pause = 500;
  const channel = new Channel((message) => {
    if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
    else unsent.push(message);
  });
  const connect = () => {
    socket = new WebSocket(address);
    socket.onopen = () => {
      pause = 500;
      onState(true);
      for (const message of unsent) socket.send(JSON.stringify(message));
      unsent = [];
    };
    socket.onmessage = (event) => channel.receive(JSON.parse(event.data));
    socket.onclose = () => {
      unsent = [];
      onState(false);
      channel.fail("The connection to suffice serve is lost.");
      setTimeout(connect, pause);
      pause = Math.min(2 * pause, 8000);
    };
  };
  connect();
  channel.upload = async (file) => {
    const answer = await fetch("api/upload", { method: "POST", body: file, headers: { "X-Name": encodeURIComponent(file.name) } });
    const said = await answer.json();
    if (said.error) throw new Error(said.error.message);
    return said.data;
  };
  channel.loadCharts = () => import("./vega.js");
  return channel;
}
