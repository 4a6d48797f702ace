(function () {
  "use strict";

  const clock = document.getElementById("clock");
  const state = document.getElementById("state");
  const events = new EventSource("/clock");

  events.onopen = function () { state.textContent = "connected"; };
  events.onerror = function () { state.textContent = "disconnected"; };
  events.onmessage = function (event) { clock.textContent = event.data; };
})();
