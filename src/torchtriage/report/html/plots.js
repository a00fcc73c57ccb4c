"use strict";
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // Every plot of steps shows the same ones: what stands above one another happened together.
  function ends(plot) {
    const alike = plot.axis === "step" ? plots.filter((each) => each.axis === "step") : [plot];
    return [Math.min(...alike.map((each) => each.steps[0])), Math.max(...alike.map((each) => each.steps[each.steps.length - 1]))];
  }

  const ROW = 16;  // pixels of one row of labels

  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function trace(plot, name, values, index) {
    const own = plot.axis === "step" ? color(name) || color(["forward", "data", "optimizer"][index % 3]) : layer(plot, name, index);
    const paint = own || color("idle");
    const unit = plot.unit ? ` ${plot.unit}` : "";
    const common = { name, x: plot.steps, y: values, type: "scatter", mode: "lines", hovertemplate: `%{y:.4~g}${unit}` };
    // Layers, not bars: a step that is left out leaves no hole, and a thinned run no hairlines.
    return plot.stacked && !plot.lines.includes(name)
      ? { ...common, stackgroup: "step", fillcolor: paint, line: { color: paint, width: 0, shape: "hvh" } }
      : { ...common, connectgaps: false, line: { color: paint, width: 2, shape: plot.id === "scale" ? "hv" : "linear" } };
  }

  // Layers that are no phases: as many colours as there may be, and grey for what is left.
  function layer(plot, name, index) {
    const names = ["compute", "input", "optimizer", "communication", "memcpy", "sync", "backward"];
    if (plot.lines.includes(name)) return color("text");
    return Object.keys(plot.columns).length > 2 ? color(names[index]) : color("compute");
  }

  function line(mark) {
    return {
      type: "line", xref: "x", yref: "paper", x0: mark.step, x1: mark.step, y0: 0, y1: 1,
      line: { color: color(mark.tone), width: 1.5, dash: "dot" },
    };
  }

  // Steps whose figure is not finite, as bands.
  function bands(plot) {
    const columns = Object.values(plot.columns);
    const gone = plot.steps.map((_, index) => columns.every((values) => values[index] === null));
    const band = (from, to) => ({
      type: "rect", xref: "x", yref: "paper", x0: plot.steps[from], x1: plot.steps[to], y0: 0, y1: 1, layer: "below",
      fillcolor: color("error"), opacity: 0.12, line: { width: 0 },
    });
    const found = [];
    for (let from = 0, to; from < gone.length; from = to + 1) {
      to = from;
      while (gone[from] && gone[to + 1]) to += 1;
      if (to > from) found.push(band(from, to));
    }
    return found;
  }

  // The marked steps above the plot in at most three rows, so that no label covers a figure or another label.
  function labels(plot, narrow) {
    const [first, last] = ends(plot);
    const rows = [];
    const wide = (last - first || 1) * (narrow ? 0.24 : 0.09);
    const named = new Map();
    for (const mark of plot.marks) if (!named.has(mark.step)) named.set(mark.step, mark);
    return [...named.values()].flatMap((mark) => {
      const start = mark.step > (first + last) / 2 ? mark.step - wide : mark.step;
      let row = rows.findIndex((end) => end <= start);
      if (row < 0) row = rows.length;
      if (row > 2) return [];
      rows[row] = start + wide;
      return [{
        xref: "x", yref: "paper", x: mark.step, y: 1, yanchor: "bottom", yshift: ROW * row, showarrow: false,
        xanchor: start < mark.step ? "right" : "left", text: `${plot.axis} ${mark.step}`,
        captureevents: Boolean(mark.fault), name: mark.fault, borderpad: 0,
        font: { color: color(mark.tone), size: narrow ? 11 : 12 },
      }];
    });
  }

  // 1, 2, 5 of each power of ten, as many as are read with ease.
  function ticks(plot) {
    const values = Object.values(plot.columns).flat().filter((value) => value !== null);
    const [low, high] = [Math.min(...values), Math.max(...values)].map(Math.log10);
    const digits = high - low < 3 ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil((high - low) / 8));
    const tickvals = [];
    for (let power = Math.floor(low); power <= Math.ceil(high); power += every) {
      for (const digit of digits) tickvals.push(digit * 10 ** power);
    }
    return { tickvals, ticktext: tickvals.map(spoken) };
  }

  function spoken(value) {
    const [digits, power] = value.toExponential(0).split("e");
    return power > -4 && power < 6 ? Number(value.toPrecision(3)).toLocaleString("en") : `${digits}e${Number(power)}`;
  }

  function layout(plot, narrow, box) {
    const axis = { gridcolor: color("line"), zerolinecolor: color("line"), linecolor: color("line"), fixedrange: narrow };
    const scale = plot.log ? { type: "log", ...ticks(plot) } : { type: "linear", rangemode: plot.zero ? "tozero" : "normal" };
    const [first, last] = ends(plot);
    const whole = plot.axis === "step" ? "d" : ",d";
    const pad = Math.max(0.5, (last - first) * 0.01);
    const annotations = labels(plot, narrow);
    const rows = Math.max(0, ...annotations.map((label) => label.yshift / ROW + 1));
    return {
      width: box.clientWidth, height: box.clientHeight,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: color("soft"), family: "system-ui, sans-serif", size: narrow ? 11 : 12 },
      margin: { l: narrow ? 52 : 60, r: 12, t: 10 + ROW * rows, b: 44 },
      hovermode: "x unified",
      hoverlabel: { bgcolor: color("card"), bordercolor: color("line"), font: { color: color("text") } },
      showlegend: Object.keys(plot.columns).length > 1,
      legend: { orientation: "h", y: -0.24, yanchor: "top", x: 0, traceorder: "normal" },
      xaxis: { ...axis, title: { text: plot.axis, standoff: 8 }, zeroline: false, hoverformat: whole, tickformat: whole, range: [first - pad, last + pad] },
      yaxis: { ...axis, title: { text: plot.unit, standoff: 8 }, exponentformat: "e", ...scale },
      shapes: [...bands(plot), ...plot.marks.map(line)],
      annotations,
    };
  }

  function draw() {
    for (const plot of plots) {
      const box = document.getElementById(`plot-${plot.id}`);
      const narrow = box.clientWidth < 560;
      const traces = Object.entries(plot.columns).map(([name, values], index) => trace(plot, name, values, index));
      Plotly.react(box, traces, layout(plot, narrow, box), { displayModeBar: false, showTips: false, doubleClick: "reset" });
      if (!box.dataset.linked) {
        box.dataset.linked = "yes";
        box.on("plotly_clickannotation", ({ annotation }) => { location.hash = `finding-${annotation.name}`; });
      }
    }
  }

  dark.addEventListener("change", draw);
  new ResizeObserver(draw).observe(document.querySelector(".plot"));
})();
