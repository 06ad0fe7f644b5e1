// What the sliders say is asked of the server on this machine, and its answer is drawn. Nothing is computed here.
"use strict";

const told = JSON.parse(document.body.dataset.planner);
const $ = (id) => document.getElementById(id);
const names = Object.keys(told.question);
const WAIT = 120; // milliseconds that a slider has to rest

// A slider stands at the nearest of its stops; what is typed stays as it is.
const toSlider = (name, value) => {
  const away = told.stops[name].map((stop) => Math.abs(Math.log(stop / value)));
  return away.indexOf(Math.min(...away));
};

const short = (value) => {
  if (value === null || value === undefined) return "–";
  if (value !== 0 && (value < 1e-3 || value >= 1e5)) return value.toExponential(2).replace("e+", "e");
  return String(Number(value.toPrecision(4)));
};
const sized = (value) => {
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

// One question at a time: while one is out, only the newest waits.
let timer = 0;
let asking = false;
let waiting = false;

const changed = () => {
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
    const found = await reply.json();
    show(now, reply.ok ? found : { reason: found.error, curves: {}, bytes: {} });
  } catch {
    show(now, { reason: "The planner on this machine doesn't answer: was it ended?", curves: {}, bytes: {} });
  }
  asking = false;
  document.querySelector(".answer").removeAttribute("aria-busy");
  if (waiting) ask();
}

function show(now, found) {
  $("protects").textContent = told.protects[now.mechanism];
  $("said").textContent = found.reason || found.sentence;
  $("warnings").replaceChildren(
    ...(found.warnings || []).map((each) => Object.assign(document.createElement("li"), { textContent: each })),
  );
  $("verdict").className = `verdict ${found.reason ? "bad" : (found.warnings || []).length ? "none" : "good"}`;
  $("tile-noise_multiplier").textContent = short(found.noise_multiplier);
  $("tile-noise_to_signal").textContent = short(found.noise_to_signal);
  $("tile-client_expected").textContent = sized(found.bytes.client_expected);
  const most = found.bytes.client_total;
  $("client-most").textContent = most > found.bytes.client_expected ? `at most ${sized(most)}` : "";
  $("tile-all_total").textContent = sized(found.bytes.all_total);
  const curves = found.curves;
  $("drawn").hidden = Object.keys(curves).length === 0;
  draw("epsilon", [["", curves.epsilon?.x, curves.epsilon?.y]], [found.noise_multiplier, found.epsilon]);
  draw("noise", [["", curves.noise?.x, curves.noise?.y]], [now.rounds, found.noise_multiplier]);
  draw("loudness", [["", curves.loudness?.x, curves.loudness?.y]], [now.clients, found.noise_to_signal]);
  draw("bytes", [
    ["of a client", curves.bytes?.x, curves.bytes?.client_expected],
    ["of all clients", curves.bytes?.x, curves.bytes?.all_total],
  ]);
}

function draw(name, lines, now) {
  const chart = $(`chart-${name}`);
  const figure = chart.closest("figure");
  const hidden = figure.hidden;
  figure.hidden = !lines.some(([, , y]) => y?.some((each) => each !== null)); // rather than an empty grid
  if (figure.hidden) return;
  const { across, up } = told.axes[name];
  const [quiet] = told.colours.slice(-1);
  const traces = lines.map(([label, x, y], place) => ({
    x: x || [],
    y: y || [],
    name: label,
    mode: "lines+markers",
    line: { color: told.colours[place], width: 2 },
    marker: { size: 5 },
    hovertemplate: "%{y:.4~g}",
  }));
  if (now && now.every((each) => each !== null && each !== undefined)) {
    const marker = { size: 13, symbol: "star", color: quiet };
    traces.push({ x: [now[0]], y: [now[1]], name: "now", mode: "markers", marker, hovertemplate: "%{y:.4~g}" });
  }
  const layout = {
    ...told.layout,
    height: 260,
    showlegend: lines.length > 1,
    xaxis: { ...told.layout.xaxis, ...axis(across, traces.flatMap((each) => each.x)) },
    yaxis: { ...told.layout.yaxis, ...axis(up, traces.flatMap((each) => each.y)) },
  };
  Plotly.react(chart, traces, layout, { displayModeBar: false, responsive: true });
  if (hidden) Plotly.Plots.resize(chart); // the window may have changed meanwhile
  const said = lines.map(([label, x, y]) =>
    x && x.length
      ? `${label} from ${short(y[0])} at ${short(x[0])} to ${short(y[y.length - 1])} at ${short(x[x.length - 1])}`.trim()
      : "no values",
  );
  chart.setAttribute("aria-label", `Line chart of ${up} by ${across}: ${said.join("; ")}.`);
}

// A logarithmic axis: ticks at 1, 2 and 5 where it is short, at powers of ten where it is long.
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
      speak(name);
    }
    changed();
  });
  if (slider) {
    slider.addEventListener("input", () => {
      $(name).value = told.stops[name][Number(slider.value)];
      speak(name);
      changed();
    });
    speak(name);
  }
}

function speak(name) {
  $(`${name}-slider`).setAttribute("aria-valuetext", $(name).value);
}

document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
ask();
