// Chart of the cumulative reward of a game; clicking or dragging selects the step.

const FRAME = { width: 268, height: 130, left: 34, right: 8, top: 10, bottom: 18 };

class Chart {
  constructor(container, onStep) {
    this.svg = element("svg", { viewBox: `0 0 ${FRAME.width} ${FRAME.height}`, role: "img" });
    this.svg.setAttribute("preserveAspectRatio", "none");
    container.append(this.svg);
    const seek = (event) => event.buttons && onStep(this.stepAt(event));
    this.svg.addEventListener("pointerdown", seek);
    this.svg.addEventListener("pointermove", seek);
    new ResizeObserver(() => this.fit(container)).observe(container);
  }

  /** Fit the view box to the pixel size of the container: text keeps its size. */
  fit(container) {
    this.width = Math.max(container.clientWidth, 120);
    this.height = Math.max(container.clientHeight, 110);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    if (this.sums) {
      this.load(this.sums);
      this.show(this.step);
    }
  }

  load(sums) {
    this.sums = sums;
    this.width ??= FRAME.width;
    this.height ??= FRAME.height;
    this.low = Math.min(...sums, -1);
    this.high = Math.max(...sums, 0);
    this.svg.setAttribute("aria-label", `Total reward by step, at the end ${signed(sums.at(-1))}`);
    const [zero, last] = [this.y(0), this.x(sums.length - 1)];
    this.played = element("path", { class: "sum-line played" });
    this.cursor = element("line", { class: "cursor", y1: FRAME.top, y2: this.height - FRAME.bottom });
    this.spot = element("circle", { class: "spot", r: 4 });
    this.svg.replaceChildren(
      element("line", { class: "axis", x1: FRAME.left, x2: last, y1: zero, y2: zero }),
      ...this.labels(),
      element("path", { class: "sum-line", d: this.path(sums.length) }),
      this.played,
      this.cursor,
      this.spot,
    );
  }

  labels() {
    const end = this.height - 4;
    const low = signed(this.low, Math.abs(this.low) < 10 ? 1 : 0);
    const last = this.x(this.sums.length - 1);
    return [
      element("text", { x: FRAME.left - 5, y: this.y(0) + 4, "text-anchor": "end" }, "0"),
      element("text", { x: FRAME.left - 5, y: this.y(this.low) + 3, "text-anchor": "end" }, low),
      element("text", { x: FRAME.left, y: end }, "step 1"),
      element("text", { x: last, y: end, "text-anchor": "end" }, this.sums.length),
    ];
  }

  show(step) {
    this.step = step;
    this.played.setAttribute("d", this.path(step + 1));
    for (const end of ["x1", "x2"]) this.cursor.setAttribute(end, this.x(step));
    this.spot.setAttribute("cx", this.x(step));
    this.spot.setAttribute("cy", this.y(this.sums[step]));
  }

  path(steps) {
    return "M" + this.sums.slice(0, steps).map((sum, step) => `${this.x(step)} ${this.y(sum)}`).join("L");
  }

  x(step) {
    const room = this.width - FRAME.left - FRAME.right;
    return +(FRAME.left + (room * step) / Math.max(this.sums.length - 1, 1)).toFixed(1);
  }

  y(sum) {
    const room = this.height - FRAME.top - FRAME.bottom;
    return +(FRAME.top + (room * (this.high - sum)) / (this.high - this.low)).toFixed(1);
  }

  stepAt(event) {
    const box = this.svg.getBoundingClientRect();
    const room = this.width - FRAME.left - FRAME.right;
    const across = ((event.clientX - box.left) * this.width) / box.width;
    const share = (across - FRAME.left) / room;
    return Math.round(Math.min(Math.max(share, 0), 1) * (this.sums.length - 1));
  }
}
