// Plots: plotly is fetched when the first plot comes into view, from this server, and only on pages that have one.
// Colours come from probe elements, because plotly does not understand light-dark(); a new theme draws again.
(() => {
  const source = document.currentScript.dataset.plotly;
  let loading = null;

  const plotly = () => (loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = source;
    script.onload = () => done(window.Plotly);
    script.onerror = () => failed(new Error(`${source} could not be loaded`));
    document.head.append(script);
  }));

  function colour(name, state = "") {
    const probe = document.createElement("i");
    probe.className = `probe probe--${name}`;
    if (state) probe.dataset.state = state;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  const symbols = { pass: "circle", fail: "octagon", warn: "triangle-up", unknown: "circle-open-dot" };
  const format = { share: ".2~%", s: "", "": ",~f" };
  const font = () => getComputedStyle(document.body).fontFamily;

  function seconds(value) {
    const steps = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
    const at = Math.max(0, steps.findIndex(([, size]) => Math.abs(value) >= size));
    return value === 0 ? "0" : `${+(value / steps[at][1]).toFixed(1)} ${steps[at][0]}`;
  }

  function roundTimes(low, high) {
    const steps = [1, 5, 15, 30, 60, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800];
    const step = steps.find((one) => (high - low) / one <= 5) ?? steps.at(-1);
    const first = Math.ceil(low / step) * step;
    return Array.from({ length: Math.floor((high - first) / step) + 1 }, (_, at) => first + at * step);
  }

  function line(x, ink, dash, text, xanchor) {
    const mark = { type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", line: { color: ink, width: 1, dash } };
    const note = { x, y: 1, yref: "paper", yanchor: "bottom", xanchor, text, showarrow: false, font: { color: ink, size: 11 } };
    return { mark, note };
  }

  function layout(spec, wide) {
    const shapes = [], annotations = [];
    for (const [at, shade] of spec.shades.entries()) {
      const ink = colour("ink", shade.state);
      shapes.push({ type: "rect", x0: shade.start, x1: shade.end, y0: 0, y1: 1, yref: "paper", layer: "below", line: { width: 0 }, fillcolor: colour("soft", shade.state) });
      annotations.push({ x: shade.start, y: 1, yref: "paper", xanchor: "left", yanchor: "top", yshift: -14 * (at % 2), text: wide ? shade.label : shade.label.split(",")[0], showarrow: false, font: { color: ink, size: 11 } });
    }
    if (spec.limit !== null) {
      const ink = colour("ink", "fail");
      shapes.push({ type: "line", x0: 0, x1: 1, xref: "paper", y0: spec.limit, y1: spec.limit, line: { color: colour("mark", "fail"), width: 1.25, dash: "dash" } });
      annotations.push({ x: 0, xref: "paper", xanchor: "left", y: spec.limit, yanchor: "top", text: spec.limitLabel, showarrow: false, font: { color: ink, size: 11 } });
    }
    for (const [x, text, side] of [[spec.now, "now", "right"], [spec.next, wide ? "next rerun" : "next", "left"]]) {
      if (!x) continue;
      const { mark, note } = line(x, colour("accent"), "dot", text, side);
      shapes.push(mark);
      annotations.push(note);
    }
    const values = spec.points.map((point) => point.value).concat(spec.limit === null ? [] : [spec.limit]);
    // A band may be very wide where little was known yet: it is shown as far as half the height beyond the values.
    const least = Math.min(...values), most = Math.max(...values), beyond = (most - least) / 2 || Infinity;
    const low = Math.max(Math.min(least, ...spec.low ?? []), least - beyond);
    const high = Math.min(Math.max(most, ...spec.high ?? []), most + beyond);
    const room = (high - low || Math.abs(high) || 1) * 0.12;
    const axis = { color: colour("quiet"), gridcolor: colour("line"), linecolor: colour("line"), zeroline: false, tickfont: { size: 11 } };
    const y = { ...axis, range: [low - room, high + room * (spec.shades.length ? 2.5 : 1)], fixedrange: true, tickformat: format[spec.unit] ?? "", nticks: 5 };
    if (spec.unit === "s") {
      y.tickvals = roundTimes(low, high);
      y.ticktext = y.tickvals.map(seconds);
    }
    return {
      shapes, annotations, showlegend: false, autosize: true, height: wide ? 260 : 220,
      margin: { l: 64, r: 12, t: 24, b: 32 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent",
      font: { family: font(), size: 11, color: colour("quiet") }, xaxis: { ...axis, showgrid: false, nticks: wide ? 8 : 4, ...(spec.from ? { range: [spec.from, spec.to] } : {}) }, yaxis: y,
      hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("line"), font: { color: colour("text") } },
    };
  }

  // What is usual, as an area between two lines that are not drawn themselves.
  function band(spec) {
    if (!spec.low?.length) return [];
    const edge = { x: spec.points.map((point) => point.at), type: "scatter", mode: "lines", line: { width: 0 }, hoverinfo: "skip" };
    return [{ ...edge, y: spec.low }, { ...edge, y: spec.high, fill: "tonexty", fillcolor: colour("band") }];
  }

  function trace(spec) {
    const points = spec.points;
    return {
      x: points.map((point) => point.at), y: points.map((point) => point.value), type: "scatter",
      mode: points.length > 1 ? "lines+markers" : "markers", line: { color: colour("text"), width: 1.5, shape: spec.steps ? "hv" : "linear" },
      marker: {
        symbol: points.map((point) => symbols[point.state] ?? "circle"),
        size: points.map((point) => (point.state === "pass" ? 5 : 11)),
        color: points.map((point) => (point.state === "pass" ? colour("text") : colour("mark", point.state))),
      },
      text: points.map((point) => `${point.label}<br><b>${point.value_text}</b>, ${point.state}`), hovertemplate: "%{text}<extra></extra>",
    };
  }

  async function draw(place) {
    const spec = JSON.parse(document.getElementById(place.dataset.plot).textContent);
    const Plotly = await plotly();
    const wide = place.clientWidth > 560;
    await Plotly.react(place, [...band(spec), trace(spec)], layout(spec, wide), { displayModeBar: false, responsive: true });
    place.dataset.drawn = "yes";
  }

  const failed = (place) => (problem) => {
    console.warn("A plot could not be drawn:", problem);
    place.closest("figure")?.querySelector(".chart__table")?.setAttribute("open", ""); // the table has it all
  };
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      draw(target).catch(failed(target));
    }
  });
  for (const place of document.querySelectorAll("[data-plot]")) seen.observe(place);
  document.addEventListener("lakehub:theme", () => {
    for (const place of document.querySelectorAll("[data-drawn]")) draw(place).catch(failed(place));
  });
})();
