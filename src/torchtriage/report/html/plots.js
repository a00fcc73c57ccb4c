
"use strict";
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function trace(plot, name, values, index) {
    const known = color(name);
    const paint = known || color(["forward", "data", "optimizer"][index % 3]);
    const unit = plot.unit ? ` ${plot.unit}` : "";
    const common = { name, x: plot.steps, y: values, hovertemplate: `%{y:.4~g}${unit}` };
    return plot.stacked
      ? { ...common, type: "bar", marker: { color: paint, line: { width: 0 } } }
      : { ...common, type: "scatter", mode: "lines", connectgaps: false, line: { color: paint, width: 2 } };
  }

  function line(mark) {
    return {
      type: "line", xref: "x", yref: "paper", x0: mark.step, x1: mark.step, y0: 0, y1: 1,
      line: { color: color("error"), width: 1.5, dash: "dot" },
    };
  }

  // Plotly reads a little markup in labels; a label is only ever text.
  function plain(text) {
    return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  }

  function label(mark, index, narrow, plot) {
    const middle = (plot.steps[0] + plot.steps[plot.steps.length - 1]) / 2;
    return {
      xref: "x", yref: "paper", x: mark.step, y: 1 - 0.1 * (index % 4), yanchor: "top", showarrow: false,
      xanchor: mark.step > middle ? "right" : "left", text: plain(`step ${mark.step}: ${mark.label}`),
      font: { color: color("error"), size: narrow ? 10 : 12 }, bgcolor: color("card"), borderpad: 2,
    };
  }

  function layout(plot, narrow, box) {
    const axis = { gridcolor: color("line"), zerolinecolor: color("line"), linecolor: color("line"), fixedrange: narrow };
    return {
      width: box.clientWidth, height: box.clientHeight,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", barmode: "stack", bargap: 0,
      font: { color: color("soft"), family: "system-ui, sans-serif", size: narrow ? 11 : 12 },
      margin: { l: narrow ? 44 : 56, r: 12, t: 10, b: 44 },
      hovermode: "x unified",
      hoverlabel: { bgcolor: color("card"), bordercolor: color("line"), font: { color: color("text") } },
      showlegend: Object.keys(plot.columns).length > 1,
      legend: { orientation: "h", y: narrow ? -0.22 : 1.02, yanchor: narrow ? "top" : "bottom", x: 0, traceorder: "normal" },
      xaxis: { ...axis, title: { text: "step", standoff: 8 }, zeroline: false, hoverformat: "d" },
      yaxis: { ...axis, title: { text: plot.unit, standoff: 8 }, rangemode: plot.stacked ? "tozero" : "normal", type: plot.log ? "log" : "linear" },
      shapes: plot.marks.map(line),
      annotations: plot.marks.map((mark, index) => label(mark, index, narrow, plot)),
    };
  }

  function draw() {
    for (const plot of plots) {
      const box = document.getElementById(`plot-${plot.id}`);
      const narrow = box.clientWidth < 560;
      const traces = Object.entries(plot.columns).map(([name, values], index) => trace(plot, name, values, index));
      Plotly.react(box, traces, layout(plot, narrow, box), { displayModeBar: false, showTips: false, doubleClick: "reset" });
    }
  }

  dark.addEventListener("change", draw);
  new ResizeObserver(draw).observe(document.querySelector(".plot"));
})();
