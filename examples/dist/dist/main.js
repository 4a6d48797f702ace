document.querySelector("#script").textContent = "The script has run.";
