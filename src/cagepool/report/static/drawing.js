// Draws a scenario as SVG at one step of a game. Positions, sizes and words are those of
// render/plan.py, which the frames of render_mode="rgb_array" are drawn by too.

const LEAST_SCALE = 0.5; // of a drawing in its container
const LARGE_WIDTH = 1250; // of a drawing that gets the whole width of the page

function element(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function mark(success) {
  return success === null ? "" : success ? " ✓" : " ✗";
}

/** Kind and target of an action; a target is all that follows the first space. */
function splitAction(action) {
  const [kind, ...target] = action.split(" ");
  return [kind, target.join(" ")];
}

/** Path of a cubic Bezier curve. */
function path([start, ...rest]) {
  return `M${start.join(" ")}C${rest.flat().join(" ")}`;
}

function textWidth(text, { character, padding }) {
  return text.length * character + padding;
}

class Drawing {
  constructor(container, scenario) {
    this.scenario = scenario;
    this.container = container;
    this.narrow = null;
    this.shown = null;
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(container);
    this.fit();
  }

  /** Stop drawing, so that another scenario can be drawn in the container. */
  remove() {
    this.observer.disconnect();
  }

  fit() {
    const narrow = this.container.clientWidth < 620;
    if (narrow === this.narrow) return;
    this.narrow = narrow;
    this.places = this.scenario.layouts[narrow ? "narrow" : "wide"];
    this.draw();
    if (this.shown) this.show(...this.shown);
  }

  draw() {
    const { width, height, zones, hosts } = this.places;
    this.svg = element("svg", { viewBox: `-2 -2 ${width + 4} ${height + 4}`, role: "group" });
    const subnets = Object.keys(zones).length;
    const counts = `${Object.keys(hosts).length} hosts in ${subnets} subnet${subnets > 1 ? "s" : ""}`;
    this.svg.setAttribute("aria-label", `Drawing of ${counts}`);
    this.container.parentElement.classList.toggle("large", !this.narrow && width > LARGE_WIDTH);
    // Cards of large scenarios stay readable; the container scrolls.
    this.svg.style.minWidth = `${Math.round(width * LEAST_SCALE)}px`;
    this.svg.append(this.patterns());
    this.zones = {};
    const { padding, baseline, radius } = this.scenario.shapes.zone;
    for (const [name, { x, y, ...size }] of Object.entries(zones)) {
      this.zones[name] = element("rect", { class: "zone", x, y, rx: radius, ...size });
      const title = element("text", { class: "zone-name", x: x + padding, y: y + baseline }, name);
      this.svg.append(this.zones[name], title);
    }
    for (const link of this.places.links) this.svg.append(element("path", { class: "link", d: path(link) }));
    this.layer = element("g");
    this.svg.append(this.layer);
    this.container.replaceChildren(this.svg);
  }

  patterns() {
    const head = { id: "head", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 5, markerHeight: 5 };
    const hatch = { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse" };
    return element(
      "defs",
      {},
      element("marker", { ...head, orient: "auto" }, element("path", { d: "M0 0L8 4L0 8z" })),
      element(
        "pattern",
        { ...hatch, patternTransform: "rotate(45)" },
        element("rect", { width: 6, height: 6 }),
        element("path", { d: "M0 0V6" }),
      ),
    );
  }

  /** Show one step of a game; `hosts` are the names in the order of the step's lists. */
  show(hosts, turn) {
    this.shown = [hosts, turn];
    const [redKind, redTarget] = splitAction(turn.red);
    for (const [name, zone] of Object.entries(this.zones)) {
      zone.classList.toggle("swept", redKind === "DiscoverRemoteSystems" && redTarget === name);
    }
    this.layer.replaceChildren(...this.attack(turn, redTarget), ...this.services(turn));
    hosts.forEach((host, index) => this.layer.append(this.card(host, index, turn)));
    this.layer.append(...this.tags(turn, redKind, redTarget));
  }

  attack(turn, target) {
    const curve = this.places.attacks[target];
    if (!curve) return [];
    const failed = turn.red_success === false ? " failed" : "";
    return [element("path", { class: `attack${failed}`, d: path(curve) })];
  }

  /** Whether OTService is stopped on a host. */
  isStopped(turn, host) {
    return turn.stopped_hosts.includes(host);
  }

  /** State of OTService in the headings of the zones that have it. */
  services(turn) {
    const { padding, baseline } = this.scenario.shapes.zone;
    return Object.entries(this.scenario.services).map(([name, hosts]) => {
      const zone = this.places.zones[name];
      const place = { x: zone.x + zone.width - padding, y: zone.y + baseline };
      const stopped = hosts.some((host) => this.isStopped(turn, host));
      const text = stopped ? "OTService stopped" : "OTService runs";
      return element("text", { class: `service ${stopped ? "stopped" : ""}`, ...place }, text);
    });
  }

  /** Name of a host as its card shows it. */
  shortName(host, hasLabel) {
    const limit = this.scenario.name_characters[Number(hasLabel)];
    return host.length <= limit ? host : `${host.slice(0, limit - 2)}..`;
  }

  card(host, index, turn) {
    const [x, y] = this.places.hosts[host];
    const { words, shapes, foothold } = this.scenario;
    const { card, cell } = shapes;
    const truth = words.access[turn.access[index]];
    const belief = words.belief[turn.belief[index]];
    const activity = words.activity[turn.activity[index]];
    const decoys = turn.decoys[index];
    const percents = this.percents(index, turn);
    const spoken = [
      `${host}: truth ${words.levels[truth]}, blue sees ${words.levels[belief]}`,
      percents ? `exact belief ${percents.privileged} % privileged, ${percents.user} % user` : "",
      activity.replace("saw", "blue saw an attempt to"),
      decoys.length ? `decoys ${decoys.join(", ")}` : "",
    ];
    const label = spoken.filter(Boolean).join("; ");
    const group = element("g", { transform: `translate(${x} ${y})`, role: "img", "aria-label": label });
    group.classList.toggle("by-blue", turn.blue_target === host);
    const [redKind, redTarget] = splitAction(turn.red);
    group.classList.toggle("by-red", redTarget === host && redKind !== "DiscoverRemoteSystems");
    group.classList.toggle("broken", this.isStopped(turn, host));
    group.dataset.host = host;
    const title = this.shortName(host, activity !== "" || host === foothold);
    const known = { cx: card.known_x, cy: card.known_y, r: card.known_radius };
    group.append(
      element("title", {}, label),
      element("rect", { class: "card", width: card.width, height: card.height, rx: card.radius }),
      element("circle", { class: `known ${words.known[turn.known[index]]}`, ...known }),
      element("text", { class: "name", x: card.name_x, y: card.name_baseline }, title),
      ...this.cell(card.padding, "truth", truth),
      ...this.cell(card.width - card.padding - cell.width, "blue sees", belief),
    );
    if (percents) group.append(this.bar(percents, belief));
    if (activity) group.append(this.saw(activity));
    // Blue cannot clear the foothold: truth and belief always differ there.
    if (host === foothold) group.append(activity ? "" : this.note("red's foothold"));
    else if (truth !== belief) group.append(this.unlike());
    if (decoys.length) group.append(this.decoys(decoys));
    return group;
  }

  cell(x, caption, level) {
    const { y, width, height, radius, text_x, caption_baseline, value_baseline } = this.scenario.shapes.cell;
    const left = x + text_x;
    return [
      element("rect", { class: `cell ${level}-cell`, x, y, width, height, rx: radius }),
      element("text", { class: `caption on-${level}`, x: left, y: caption_baseline }, caption),
      element("text", { class: `value on-${level}`, x: left, y: value_baseline }, this.scenario.words.levels[level]),
    ];
  }

  /** Blue's exact belief about a host in percent; null if the game was recorded without. */
  percents(index, turn) {
    if (!turn.believed_privileged) return null;
    return { privileged: turn.believed_privileged[index], user: turn.believed_user[index] };
  }

  /** Exact belief: a bar with the shares of privileged and user access, and their sum. */
  bar({ privileged, user }, level) {
    const { card, cell, bar } = this.scenario.shapes;
    const width = card.width - 2 * card.padding;
    const part = (kind, start, percent) =>
      element("rect", {
        class: `${kind}-cell`,
        x: card.padding + (width * start) / 100,
        y: bar.y,
        width: (width * percent) / 100,
        height: bar.height,
      });
    const right = { x: card.width - card.padding - bar.number_x, y: cell.caption_baseline };
    return element(
      "g",
      { class: "belief" },
      part("none", 0, 100),
      part("privileged", 0, privileged),
      part("user", privileged, user),
      element("text", { class: `number on-${level}`, ...right }, privileged + user || ""),
    );
  }

  saw(text) {
    const { card, saw } = this.scenario.shapes;
    const width = textWidth(text, saw);
    const x = card.width - card.padding - width;
    return element(
      "g",
      { class: "saw" },
      element("rect", { x, y: saw.y, width, height: saw.height, rx: 4 }),
      element("text", { x: x + width / 2, y: saw.baseline }, text),
    );
  }

  unlike() {
    const { card, cell } = this.scenario.shapes;
    const place = { cx: card.width / 2, cy: cell.y + cell.height / 2, r: cell.unlike_radius };
    const text = element("text", { x: place.cx, y: place.cy + 4 }, "≠");
    return element("g", { class: "unlike-mark" }, element("circle", place), text);
  }

  note(text) {
    const { width, padding } = this.scenario.shapes.card;
    return element("text", { class: "decoys", x: width - padding, y: 22, "text-anchor": "end" }, text);
  }

  decoys(names) {
    const { padding, decoys_baseline } = this.scenario.shapes.card;
    const count = this.scenario.decoys_shown;
    const shown = names.slice(0, count).join(", ");
    const more = names.length > count ? ` +${names.length - count}` : "";
    const diamond = element("tspan", {}, "◆ ");
    return element("text", { class: "decoys", x: padding, y: decoys_baseline }, diamond, shown + more);
  }

  /** Short names of the actions, on the edges of their targets. */
  tags(turn, redKind, redTarget) {
    const { shapes, words, defender, foothold } = this.scenario;
    const { card, tag } = shapes;
    const { hosts, zones } = this.places;
    const right = card.width - tag.inset;
    const blueWord = turn.blue.split(" ")[0].replace(/^Decoy/, "decoy ").toLowerCase();
    const [blueX, blueY] = hosts[turn.blue_target ?? defender];
    const tags = [this.tag("blue", blueWord, turn.blue_success, blueX + right, blueY, "end")];
    const zone = redKind === "DiscoverRemoteSystems" ? zones[redTarget] : null;
    const [hostX, hostY] = hosts[redTarget] ?? hosts[foothold];
    const [x, y] = zone
      ? [zone.x + zone.width / 2 + tag.zone_x, zone.y + tag.zone_y]
      : [hostX + tag.inset, hostY];
    tags.push(this.tag("red", words.red[redKind] ?? redKind, turn.red_success, x, y, "start"));
    if (turn.green) {
      const [greenX, greenY] = hosts[turn.green];
      const bottom = greenY + card.height + tag.green_y;
      tags.push(this.tag("green", words.green, null, greenX + right, bottom, "end"));
    }
    return tags;
  }

  tag(side, word, success, x, y, anchor) {
    const { tag } = this.scenario.shapes;
    const text = word + mark(success);
    const width = textWidth(text, tag);
    const left = anchor === "end" ? x - width : x;
    const failed = success === false ? " failed" : "";
    const size = { width, height: tag.height, rx: tag.height / 2 };
    return element(
      "g",
      { class: `tag ${side}${failed}` },
      element("rect", { x: left, y: y - tag.above, ...size }),
      element("text", { x: left + width / 2, y: y + tag.baseline }, text),
    );
  }
}
