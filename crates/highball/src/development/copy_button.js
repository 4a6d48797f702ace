// The button copies the diagnosis as text. Where the browser allows no page to copy, the text is shown and selected.
(function () {
  const button = document.querySelector(".copy");
  const text = document.querySelector(".text");
  button.hidden = false;
  button.addEventListener("click", function () {
    const copied = navigator.clipboard ? navigator.clipboard.writeText(text.textContent) : Promise.reject();
    copied.then(
      function () { button.textContent = "Copied"; },
      function () {
        text.hidden = false;
        getSelection().selectAllChildren(text);
        text.focus();
        text.scrollIntoView();
        button.textContent = "Selected below";
      }
    );
  });
})();
