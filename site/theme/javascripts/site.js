// The theme puts wide tables into boxes that scroll. Keyboards reach them, too.
document$.subscribe(function () {
  setTimeout(function () {
    for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) box.tabIndex = 0;
  });
});
