// The theme puts wide tables into boxes that scroll, and wide code scrolls as well. Keyboards reach them, too.
document$.subscribe(function () {
  setTimeout(function () {
    for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) box.tabIndex = 0;
    for (const code of document.querySelectorAll("pre > code"))
      if (code.scrollWidth > code.clientWidth) code.tabIndex = 0;
  });
});
