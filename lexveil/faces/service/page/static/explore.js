// What htmx has no word for: sliders beside numbers, arrow keys among tokens, the chosen token, copying.
"use strict";
const find = (selector) => document.querySelector(selector);
const STEPS = 4; // of the slider, in each doubling of epsilon
let chosen = null; // the token that is looked at: its number and text

const slid = (slider) =>
  slider.dataset.log ? Number((2 ** (slider.value / STEPS)).toPrecision(3)) : Number(slider.value);
const place = (slider, value) => (slider.dataset.log ? STEPS * Math.log2(value) : value);

document.addEventListener("input", (event) => {
  const field = event.target;
  const slider = field.matches(".slider") ? field : find(`.slider[data-for="${field.id}"]`);
  if (!slider || !(field === slider || field.matches(".figure"))) return;
  const figure = document.getElementById(slider.dataset.for);
  if (field === slider) figure.value = slid(slider);
  else if (figure.value > 0) slider.value = place(slider, figure.value);
  tell(slider, figure);
  find(`#by-${figure.id}`).checked = true;
}, true);

function tell(slider, figure) {
  slider.setAttribute("aria-valuetext", figure.value);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.id === "again") {
    const seed = find("#seed");
    seed.value = Number(seed.value) + 1;
    htmx.trigger("#settings", "redraw");
  } else if (button.dataset.copy) {
    navigator.clipboard.writeText(find(`#${button.dataset.copy}`).textContent).then(() => {
      button.textContent = "Copied";
    });
  } else if (button.matches("#tokens button")) {
    choose(button);
  }
});

function choose(button) {
  chosen = { id: button.id, text: button.textContent };
  for (const other of button.parentElement.querySelectorAll("button")) {
    other.setAttribute("aria-pressed", String(other === button));
    other.tabIndex = other === button ? 0 : -1;
  }
}

// One stop of the Tab key for all tokens.
document.addEventListener("keydown", (event) => {
  const here = event.target;
  if (!(here instanceof Element) || !here.matches("#tokens button")) return;
  const all = [...here.parentElement.querySelectorAll("button")];
  const at = all.indexOf(here);
  const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (to === undefined || !all[to]) return;
  event.preventDefault();
  here.tabIndex = -1;
  all[to].tabIndex = 0;
  all[to].focus();
});

// What an empty limit is: of the model, of lexveil.toml, of epsilon.
function tellDefaults() {
  const figures = find("#figures");
  if (!figures) return;
  for (const [id, value] of [["average_words", figures.dataset.averageWords], ["max_token_epsilon", figures.dataset.maxTokenEpsilon]]) {
    const field = document.getElementById(id);
    if (!field.value) field.placeholder = value;
  }
}

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "results") return;
  tellDefaults();
  const button = chosen && document.getElementById(chosen.id);
  if (button && button.textContent === chosen.text) {
    choose(button);
    htmx.trigger(button, "again");
  } else {
    chosen = null;
    find("#token")?.replaceChildren();
  }
});

// What is open stays open when the draws are shown anew.
let isOpen = false;
document.addEventListener("toggle", (event) => {
  if (event.target.id === "changes") isOpen = event.target.open;
}, true);
document.addEventListener("htmx:load", () => {
  const changes = find("#changes");
  if (changes && isOpen) changes.open = true;
});

const gone = (text) => {
  const box = find("#gone");
  box.textContent = text;
  box.hidden = !text;
};
document.addEventListener("htmx:sendError", () => gone("The program behind this page has ended. Start `lexveil explore` again, and open the address that it prints."));
document.addEventListener("htmx:responseError", (event) => {
  const status = event.detail.xhr.status;
  if (status !== 422) gone(status === 503 ? "Too much was asked at once; change something again." : `That failed (${status}); the terminal says where.`);
});
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.status < 400) gone("");
  // What is asked about draws that the same error replaces: it is said once.
  else if (!["results", "token"].includes(event.detail.target.id)) event.detail.shouldSwap = false;
});
