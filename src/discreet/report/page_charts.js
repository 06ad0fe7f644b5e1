// Draws the charts of a page, and resizes them for printing.
for (const data of document.querySelectorAll("script[data-chart]")) {
  const {data: traces, layout} = JSON.parse(data.textContent);
  Plotly.newPlot(data.dataset.chart, traces, layout, {displayModeBar: false, responsive: true});
}
const charts = () => document.querySelectorAll(".chart");
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details[data-print]:not([open])")];
  opened.forEach((block) => { block.open = true; });
  charts().forEach((chart) => Plotly.relayout(chart, {width: Math.min(chart.clientWidth, 620)}));
});
addEventListener("afterprint", () => {
  opened.forEach((block) => { block.open = false; });
  charts().forEach((chart) => Plotly.relayout(chart, {width: null, autosize: true}));
});
