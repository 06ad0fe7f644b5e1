// Sends the sliders' numbers to the server on this machine and shows its answer. Nothing is computed or drawn here.
"use strict";

const config = JSON.parse(document.body.dataset.planner);
const $ = (id) => document.getElementById(id);
const names = Object.keys(config.question);
const WAIT = 120; // milliseconds of rest before a slider's number is sent

// A slider moves to the nearest of its positions; a typed number stays as it is.
const toSlider = (name, value) => {
  const away = config.stops[name].map((stop) => Math.abs(Math.log(stop / value)));
  return away.indexOf(Math.min(...away));
};

const question = () =>
  Object.fromEntries(
    names.map((name) => [name, ["mechanism", "view"].includes(name) ? $(name).value : Number($(name).value)]),
  );

// One question at a time: while one is open, only the newest waits.
let timer = 0;
let asking = false;
let waiting = false;

const scheduleQuestion = () => {
  clearTimeout(timer);
  timer = setTimeout(ask, WAIT);
};

async function ask() {
  if (asking) {
    waiting = true;
    return;
  }
  asking = true;
  waiting = false;
  const now = question();
  $("mechanism-note").textContent = config.mechanism_notes[now.mechanism];
  document.querySelector(".answer").setAttribute("aria-busy", "true");
  try {
    const reply = await fetch(`answer?q=${encodeURIComponent(JSON.stringify(now))}`);
    const answer = await reply.json();
    if (reply.ok) show(answer.sections);
    else showProblem(answer.error);
  } catch {
    showProblem("The planner on this machine doesn't answer. Is it still running?");
  }
  asking = false;
  document.querySelector(".answer").removeAttribute("aria-busy");
  if (waiting) ask();
}

// Replaces the parts of the answer; tables that were open stay open.
function show(sections) {
  const open = [...document.querySelectorAll("#charts details[open]")].map((table) => table.closest("figure").id);
  for (const [name, html] of Object.entries(sections)) $(name).innerHTML = html;
  for (const id of open) $(id)?.querySelector("details")?.setAttribute("open", "");
}

function showProblem(text) {
  const sentence = Object.assign(document.createElement("p"), { id: "sentence", textContent: text });
  const verdict = Object.assign(document.createElement("div"), { className: "verdict bad" });
  verdict.append(sentence);
  $("verdict").replaceChildren(verdict);
  for (const name of ["tiles", "charts"]) $(name).replaceChildren();
}

for (const name of names) {
  const slider = $(`${name}-slider`);
  $(name).addEventListener("input", () => {
    if (slider && Number($(name).value) > 0) {
      slider.value = toSlider(name, Number($(name).value));
      describeSlider(name);
    }
    scheduleQuestion();
  });
  if (slider) {
    slider.addEventListener("input", () => {
      $(name).value = config.stops[name][Number(slider.value)];
      describeSlider(name);
      scheduleQuestion();
    });
    describeSlider(name);
  }
}

function describeSlider(name) {
  $(`${name}-slider`).setAttribute("aria-valuetext", $(name).value);
}

document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
