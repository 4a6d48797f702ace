// A client of one Action Cable channel: subscribe, send a text, show what comes back.
// The protocol is JSON over a WebSocket, https://guides.rubyonrails.org/action_cable_overview.html
(function () {
  "use strict";

  const RECONNECT_AFTER_MS = 1000;
  const form = document.getElementById("echo");
  const text = document.getElementById("text");
  const button = form.querySelector("button");
  const state = document.getElementById("state");
  const echoes = document.getElementById("echoes");
  const identifier = JSON.stringify({ channel: form.dataset.channel });
  let socket = null;

  function send(command, data) {
    const message = { command: command, identifier: identifier };
    if (data) message.data = JSON.stringify(data);
    socket.send(JSON.stringify(message));
  }

  function show(name) {
    state.textContent = name;
    text.disabled = button.disabled = name !== "connected";
  }

  function append(string) {
    const item = document.createElement("li");
    item.textContent = string;
    echoes.append(item);
  }

  function receive(event) {
    const message = JSON.parse(event.data);
    switch (message.type) {
      case "welcome": return send("subscribe");
      case "confirm_subscription": return show("connected");
      case "reject_subscription": return show("refused");
      case "ping": return;
      case "disconnect": return socket.close();
      default: if (message.identifier === identifier) append(message.message.text);
    }
  }

  function connect() {
    const url = new URL(form.dataset.cable, location.href);
    url.protocol = url.protocol.replace("http", "ws");
    show("connecting");
    socket = new WebSocket(url, ["actioncable-v1-json"]);
    socket.addEventListener("message", receive);
    socket.addEventListener("close", function () {
      show("disconnected");
      setTimeout(connect, RECONNECT_AFTER_MS);
    });
  }

  form.addEventListener("submit", function (event) {
    event.preventDefault();
    send("message", { action: "echo", text: text.value });
    text.value = "";
    text.focus();
  });

  connect();
})();
