"use strict";
(() => {
  const heat = JSON.parse(document.getElementById("heat").textContent);
  const box = document.getElementById("heat-map");
  const phases = Object.keys(heat.times);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const TITLE = 22;  // pixels above each phase
  const ROW = Math.min(22, Math.max(5, Math.round(220 / heat.ranks.length)));
  const EACH = ROW * heat.ranks.length;
  const TOP = 4, FOOT = 46;

  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function steps(at) {
    const first = heat.steps[at];
    return heat.wide > 1 ? `steps ${first} to ${first + heat.wide - 1}` : `step ${first}`;
  }

  function spoken(milliseconds) {
    return `${Number(milliseconds.toPrecision(3))} ms`;
  }

  function told(phase) {
    return heat.times[phase].map((row, rank) => row.map((time, at) => {
      const beyond = heat.beyond[phase][rank][at];
      const than = beyond === null ? "" : `<br>${spoken(Math.abs(beyond))} ${beyond < 0 ? "less" : "more"} than the median of the others`;
      return time === null ? "" : `rank ${heat.ranks[rank]}, ${steps(at)}<br>${phase} ${spoken(time)}${than}`;
    }));
  }

  function axis(index) {
    return index ? index + 1 : "";
  }

  function trace(phase, index) {
    return {
      type: "heatmap", x: heat.steps.map((step) => step + (heat.wide - 1) / 2), y: heat.ranks.map(String), z: heat.beyond[phase],
      text: told(phase), hoverinfo: "text", hoverongaps: false, xaxis: "x", yaxis: `y${axis(index)}`,
      coloraxis: "coloraxis", xgap: heat.steps.length > 40 ? 0 : 1, ygap: ROW > 8 ? 1 : 0.5,  // with none it sets a style, too
    };
  }

  function layout(narrow) {
    const height = TOP + FOOT + phases.length * (EACH + TITLE);
    const inner = height - TOP - FOOT;
    const bottom = (index) => 1 - ((index + 1) * (EACH + TITLE)) / inner;
    const axes = Object.fromEntries(phases.map((phase, index) => [`yaxis${axis(index)}`, {
      type: "category", autorange: "reversed", fixedrange: true, showgrid: false, ticks: "", automargin: false,
      domain: [Math.max(0, bottom(index)), Math.max(0, bottom(index)) + EACH / inner],
      tickmode: "array", tickvals: heat.ranks.map(String).filter((_, at) => at % Math.ceil(14 / ROW) === 0),
    }]));
    return {
      width: box.clientWidth, height,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: color("soft"), family: "system-ui, sans-serif", size: narrow ? 11 : 12 },
      margin: { l: narrow ? 40 : 60, r: 12, t: TOP, b: FOOT },
      hoverlabel: { bgcolor: color("card"), bordercolor: color("line"), font: { color: color("text") }, align: "left" },
      coloraxis: {
        cmin: -heat.span, cmax: heat.span, cmid: 0, showscale: false,  // its colour bar sets styles, which the policy refuses
        colorscale: [[0, color("forward")], [0.5, color("code")], [1, color("data")]],
      },
      xaxis: {
        anchor: `y${axis(phases.length - 1)}`, title: { text: "step", standoff: 8 }, showgrid: false, zeroline: false,
        fixedrange: narrow, tickformat: "d", linecolor: color("line"),
      },
      ...axes,
      annotations: phases.map((phase, index) => ({
        xref: "paper", yref: "paper", x: 0, xanchor: "left", y: bottom(index) + EACH / inner, yanchor: "bottom",
        text: phase, showarrow: false, font: { color: color("text"), size: narrow ? 11 : 12 },
      })),
    };
  }

  function draw() {
    Plotly.react(box, phases.map(trace), layout(box.clientWidth < 560), { displayModeBar: false, showTips: false, doubleClick: "reset" });
  }

  dark.addEventListener("change", draw);
  new ResizeObserver(draw).observe(box.parentElement);
})();
