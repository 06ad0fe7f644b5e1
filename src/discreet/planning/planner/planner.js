// Sends the sliders' numbers to the server on this machine and draws its answer. Nothing is computed here.
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

const formatNumber = (value) => {
  if (value === null || value === undefined) return "–";
  if (value !== 0 && (value < 1e-3 || value >= 1e5)) return value.toExponential(2).replace("e+", "e");
  return String(Number(value.toPrecision(4)));
};
const formatBytes = (value) => {
  if (value === null || value === undefined) return "–";
  const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
  let place = 0;
  for (; value >= 1000 && place < units.length - 1; place += 1) value /= 1000;
  return `${Number(value.toPrecision(3))} ${units[place]}`;
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
  document.querySelector(".answer").setAttribute("aria-busy", "true");
  try {
    const reply = await fetch(`answer?q=${encodeURIComponent(JSON.stringify(now))}`);
    const answer = await reply.json();
    show(now, reply.ok ? answer : { reason: answer.error, curves: {}, bytes: {} });
  } catch {
    show(now, { reason: "The planner on this machine doesn't answer. Is it still running?", curves: {}, bytes: {} });
  }
  asking = false;
  document.querySelector(".answer").removeAttribute("aria-busy");
  if (waiting) ask();
}

function show(now, answer) {
  $("mechanism-note").textContent = config.mechanism_notes[now.mechanism];
  $("sentence").textContent = answer.reason || answer.sentence;
  $("warnings").replaceChildren(
    ...(answer.warnings || []).map((each) => Object.assign(document.createElement("li"), { textContent: each })),
  );
  $("verdict").className = `verdict ${answer.reason ? "bad" : (answer.warnings || []).length ? "none" : "good"}`;
  $("tile-noise_multiplier").textContent = formatNumber(answer.noise_multiplier);
  $("tile-noise_to_signal").textContent = formatNumber(answer.noise_to_signal);
  $("tile-client_expected").textContent = formatBytes(answer.bytes.client_expected);
  const most = answer.bytes.client_total;
  $("client-most").textContent = most > answer.bytes.client_expected ? `at most ${formatBytes(most)}` : "";
  $("tile-all_total").textContent = formatBytes(answer.bytes.all_total);
  const curves = answer.curves;
  $("charts").hidden = Object.keys(curves).length === 0;
  draw("epsilon", [["", curves.epsilon?.x, curves.epsilon?.y]], [answer.noise_multiplier, answer.epsilon]);
  draw("noise", [["", curves.noise?.x, curves.noise?.y]], [now.rounds, answer.noise_multiplier]);
  draw("noise_to_signal", [["", curves.noise_to_signal?.x, curves.noise_to_signal?.y]], [now.clients, answer.noise_to_signal]);
  draw("bytes", [
    ["one client", curves.bytes?.x, curves.bytes?.client_expected],
    ["all clients", curves.bytes?.x, curves.bytes?.all_total],
  ]);
}

function draw(name, lines, now) {
  const chart = $(`chart-${name}`);
  const figure = chart.closest("figure");
  const hidden = figure.hidden;
  figure.hidden = !lines.some(([, , y]) => y?.some((each) => each !== null)); // instead of an empty grid
  if (figure.hidden) return;
  const { x_label, y_label } = config.axes[name];
  const [quiet] = config.colours.slice(-1);
  const traces = lines.map(([label, x, y], place) => ({
    x: x || [],
    y: y || [],
    name: label,
    mode: "lines+markers",
    line: { color: config.colours[place], width: 2 },
    marker: { size: 5 },
    hovertemplate: "%{y:.4~g}",
  }));
  if (now && now.every((each) => each !== null && each !== undefined)) {
    const marker = { size: 13, symbol: "star", color: quiet };
    traces.push({ x: [now[0]], y: [now[1]], name: "current plan", mode: "markers", marker, hovertemplate: "%{y:.4~g}" });
  }
  const layout = {
    ...config.layout,
    height: 260,
    showlegend: lines.length > 1,
    xaxis: { ...config.layout.xaxis, ...axis(x_label, traces.flatMap((each) => each.x)) },
    yaxis: { ...config.layout.yaxis, ...axis(y_label, traces.flatMap((each) => each.y)) },
  };
  Plotly.react(chart, traces, layout, { displayModeBar: false, responsive: true });
  if (hidden) Plotly.Plots.resize(chart); // the window may have been resized meanwhile
  const summaries = lines.map(([label, x, y]) =>
    x && x.length
      ? `${label} from ${formatNumber(y[0])} at ${formatNumber(x[0])} to ${formatNumber(y[y.length - 1])} at ${formatNumber(x[x.length - 1])}`.trim()
      : "no values",
  );
  chart.setAttribute("aria-label", `Line chart of ${y_label} by ${x_label}: ${summaries.join("; ")}.`);
}

// A logarithmic axis: ticks at 1, 2 and 5 on a short axis, at powers of ten on a long one.
function axis(text, values) {
  const known = values.filter((each) => each > 0);
  const decades = known.length ? Math.log10(Math.max(...known) / Math.min(...known)) : 0;
  return {
    type: "log",
    dtick: decades < 3 ? "D2" : Math.ceil(decades / 6),
    exponentformat: "power",
    tickformat: "",
    tickfont: { size: 11 },
    hoverformat: ".4~g",
    showgrid: true,
    title: { text, font: { size: 13 }, standoff: 6 },
  };
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
ask();
