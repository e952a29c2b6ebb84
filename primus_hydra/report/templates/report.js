(() => {
  "use strict";
  const table = document.getElementById("points");
  const body = table.tBodies[0];
  const rows = [...body.rows];

  // Sorting: figures by size, texts as people sort them; what is unknown stays at the end in both directions.
  const compareTexts = new Intl.Collator(undefined, { numeric: true }).compare;
  function sortBy(header) {
    const column = header.cellIndex;
    const first = header.querySelector("button").dataset.first;
    const turned = first === "ascending" ? "descending" : "ascending";
    const order = header.getAttribute("aria-sort") === first ? turned : first;
    const sign = order === "ascending" ? 1 : -1;
    const isNumber = header.classList.contains("number");
    const key = (row) => row.cells[column].dataset.sort;
    rows.sort((a, b) => {
      if (key(a) === "" || key(b) === "") return (key(a) === "") - (key(b) === "");
      return sign * (isNumber ? key(a) - key(b) : compareTexts(key(a), key(b)));
    });
    body.append(...rows);
    for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", order);
  }
  for (const header of table.tHead.rows[0].cells) {
    header.querySelector("button").addEventListener("click", () => sortBy(header));
  }

  // Filtering.
  const text = document.getElementById("filter-text");
  const boxes = [...document.querySelectorAll(".filter input[type=checkbox]")];
  const count = document.getElementById("filter-count");
  const printNote = document.createElement("p");
  printNote.className = "print-note note";
  table.parentElement.before(printNote);
  function filter() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const states = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let shown = 0;
    for (const row of rows) {
      const content = row.textContent.toLowerCase();
      const isShown = words.every((word) => content.includes(word)) && (!boxes.length || states.has(row.dataset.state));
      row.hidden = !isShown;
      shown += isShown;
    }
    count.textContent = `${shown} of ${rows.length} points`;
    printNote.textContent = `A filter hides ${rows.length - shown} of ${rows.length} points.`;
    printNote.hidden = shown === rows.length;
  }
  text.addEventListener("input", filter);
  boxes.forEach((box) => box.addEventListener("change", filter));
  document.querySelector(".filter").addEventListener("submit", (event) => event.preventDefault());
  filter();

  // Copying: the clipboard needs a permission that not every browser gives a file; then the text is at least selected.
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
    });
  }

  // Charts. `ast` makes Vega interpret its expressions: the page's policy forbids to compile any.
  const { config, panels } = JSON.parse(document.getElementById("chart-data").textContent);
  for (const element of document.querySelectorAll(".chart")) {
    const spec = panels[element.dataset.chart][element.dataset.panel];
    vegaEmbed(element, spec, {
      config, ast: true, renderer: "svg", actions: false, defaultStyle: false,
      tooltip: { disableDefaultStyle: true, theme: "page" },
    }).catch((error) => {
      element.textContent = `This chart could not be drawn: ${error.message}`;
      console.error(error);
    });
  }
})();
