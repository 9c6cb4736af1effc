// The part of the page that a link names is opened, and all of it for printing; without this script readers open it.
const reveal = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (target) target.querySelectorAll(":scope > details.section").forEach((part) => (part.open = true));
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", reveal);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => (part.open = true)));
reveal();

// Tables can be sorted; without this script they are read as they stand.
document.querySelectorAll("table.sortable").forEach((table) => {
  const body = table.tBodies[0];
  const original = [...body.rows];
  table.querySelectorAll("th[data-column]").forEach((head) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const at = Number(head.dataset.column);
      const was = head.getAttribute("aria-sort");
      const next = was === null ? "ascending" : was === "ascending" ? "descending" : null;
      table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
      const value = (row) => row.cells[at].dataset.raw;
      const order = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === "" || y === "") return (x === "") - (y === ""); // what is missing stays last
        const sign = next === "descending" ? -1 : 1;
        return sign * (isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y);
      };
      if (next) head.setAttribute("aria-sort", next);
      body.append(...(next ? [...original].sort(order) : original));
    });
  });
});

// A series of a figure can be switched off in its legend; without this script all are shown.
document.querySelectorAll(".legend input").forEach((box) => {
  const drawn = box.closest("figure").querySelector(`[data-series="${box.value}"]`);
  box.addEventListener("change", () => drawn.toggleAttribute("hidden", !box.checked));
});
