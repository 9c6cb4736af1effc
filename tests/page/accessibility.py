"""What a browser tells screen readers of a page, and how far its texts stand out, over the DevTools protocol."""

from typing import Any, NamedTuple

from chromium import Chromium

CONTROLS = (
    "button", "textbox", "spinbutton", "slider", "combobox", "radio", "checkbox", "link", "DisclosureTriangle",
)  # fmt: skip
ENOUGH = 4.5  # to 1: WCAG 2.2, 1.4.3, of texts of any size

# Every text that is shown, field's values and placeholders included: its colour against the first opaque background
# behind it. Returns how many there are, and those below a ratio.
CONTRAST = """
(enough => {
  const part = value => { const x = value / 255; return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; };
  const luminance = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const numbers = colour => {
    const all = colour.match(/[\\d.]+/g).map(Number);
    return all.length < 4 ? [...all, 1] : all;
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3]));
  const paper = element => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) {
      const colour = numbers(getComputedStyle(one).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const found = [];
  const look = (element, words, colour) => {
    const below = paper(element), both = [luminance(over(numbers(colour), below)), luminance(below)];
    const [dark, light] = both.sort((a, b) => a - b);
    found.push([words.slice(0, 40), (light + 0.05) / (dark + 0.05)]);
  };
  const isShown = element => {
    const box = element.getBoundingClientRect();
    return element.checkVisibility({visibilityProperty: true}) && box.width > 1 && box.height > 1;
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement, words = texts.currentNode.textContent.trim();
    if (words && !element.closest("option") && isShown(element)) look(element, words, getComputedStyle(element).color);
  }
  for (const field of document.querySelectorAll("input, select")) {
    if (isShown(field) && !["range", "radio", "checkbox"].includes(field.type)) {
      look(field, field.id, getComputedStyle(field).color);
      if (field.placeholder) look(field, `${field.id} placeholder`, getComputedStyle(field, "::placeholder").color);
    }
  }
  return [found.length, found.filter(([, ratio]) => ratio < enough)];
})"""


class Node(NamedTuple):
    """An element as screen readers get it."""

    role: str
    name: str
    properties: dict[str, Any]


def tree(page: Chromium) -> list[Node]:
    """The accessibility tree in the order of the page, without what is hidden from readers."""
    page.call("Accessibility.enable")
    nodes = {node["nodeId"]: node for node in page.call("Accessibility.getFullAXTree")["nodes"]}
    root = next(node for node in nodes.values() if "parentId" not in node)
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        waiting += [nodes[child] for child in reversed(node.get("childIds", [])) if child in nodes]
        if not node["ignored"]:
            properties = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
            name = str(node.get("name", {}).get("value", ""))
            found.append(Node(str(node["role"]["value"]), name, properties))
    return found


def names_by_role(nodes: list[Node]) -> dict[str, list[str]]:
    """The names of elements, by role."""
    names: dict[str, list[str]] = {}
    for node in nodes:
        names.setdefault(node.role, []).append(node.name.strip())
    return names


def low_contrast(page: Chromium) -> tuple[int, list[tuple[str, float]]]:
    """How many texts are shown, and those, with their ratios, that stand out too little."""
    n, low = page.ask(f"{CONTRAST}({ENOUGH})")
    return n, [(words, ratio) for words, ratio in low]
