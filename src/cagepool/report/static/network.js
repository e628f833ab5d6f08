// Draws the network as SVG: layout of hosts and zones, and their state at one step.

const CARD = { width: 184, height: 88, gap: 24 };
const CELL_WIDTH = 78;
const ZONE = { padding: 14, heading: 30, gap: 40 };
const ACCESS = ["none", "user", "privileged"];
const BELIEF = ["none", "unknown", "user", "privileged"];
const ACTIVITY = ["", "saw scan", "saw exploit"];
const KNOWN = ["", "address", "scanned"];
const WORDS = { none: "clean", unknown: "unknown", user: "user", privileged: "privileged" };
const RED_WORDS = {
  DiscoverRemoteSystems: "sweep",
  DiscoverNetworkServices: "scan",
  ExploitRemoteService: "exploit",
  PrivilegeEscalate: "escalate",
  Impact: "impact",
  Sleep: "sleep",
};
const DECOYS_SHOWN = 3;

function element(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function mark(success) {
  return success === null ? "" : success ? " ✓" : " ✗";
}

/** Positions of zones and host cards: side by side, or stacked on narrow screens. */
function layout(network, narrow) {
  return narrow ? stacked(network) : sideBySide(network);
}

function zoneWidth(columns, between) {
  return 2 * ZONE.padding + columns * CARD.width + (columns - 1) * between;
}

function zoneHeight(rows) {
  return ZONE.heading + ZONE.padding + rows * (CARD.height + CARD.gap) - CARD.gap + ZONE.padding;
}

function cardTop(zoneTop, row) {
  return zoneTop + ZONE.heading + ZONE.padding + row * (CARD.height + CARD.gap);
}

/** The foothold of red has a column of its own on the left: attacks run from left to right. */
function sideBySide({ zones, foothold }) {
  const places = { zones: {}, hosts: {} };
  let left = 0;
  const rows = 4;
  for (const { name, hosts } of zones) {
    const hasFoothold = hosts.includes(foothold);
    const width = zoneWidth(hasFoothold ? 2 : 1, 44);
    places.zones[name] = { x: left, y: 0, width, height: zoneHeight(rows) };
    const others = hosts.filter((host) => host !== foothold);
    const x = left + width - ZONE.padding - CARD.width;
    others.forEach((host, row) => (places.hosts[host] = { x, y: cardTop(0, row) }));
    if (hasFoothold) places.hosts[foothold] = { x: left + ZONE.padding, y: cardTop(0, (rows - 1) / 2) };
    left += width + ZONE.gap;
  }
  return { ...places, width: left - ZONE.gap, height: zoneHeight(rows) };
}

function stacked({ zones }) {
  const places = { zones: {}, hosts: {} };
  const width = zoneWidth(2, 20);
  let top = 0;
  for (const { name, hosts } of zones) {
    const height = zoneHeight(Math.ceil(hosts.length / 2));
    places.zones[name] = { x: 0, y: top, width, height };
    hosts.forEach((host, number) => {
      const x = ZONE.padding + (number % 2) * (CARD.width + 20);
      places.hosts[host] = { x, y: cardTop(top, Math.floor(number / 2)) };
    });
    top += height + 16;
  }
  return { ...places, width, height: top - 16 };
}

/** Path of a curve from one card to the edge of another. */
function route(from, to) {
  const middle = CARD.height / 2;
  if (to.x > from.x) {
    const [x1, y1, x2, y2] = [from.x + CARD.width, from.y + middle, to.x - 3, to.y + middle];
    const bend = Math.max(20, (x2 - x1) * 0.5);
    return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  }
  const x1 = from.x + CARD.width / 2;
  const x2 = to.x + CARD.width / 2;
  const [y1, y2] = [from.y + CARD.height, to.y - 3];
  return `M${x1} ${y1}C${x1} ${y1 + 40} ${x2} ${y2 - 40} ${x2} ${y2}`;
}

class Network {
  constructor(container, network) {
    this.network = network;
    this.container = container;
    this.narrow = null;
    this.shown = null;
    new ResizeObserver(() => this.fit()).observe(container);
    this.fit();
  }

  fit() {
    const narrow = this.container.clientWidth < 620;
    if (narrow === this.narrow) return;
    this.narrow = narrow;
    this.places = layout(this.network, narrow);
    this.draw();
    if (this.shown) this.show(...this.shown);
  }

  draw() {
    const { width, height, zones } = this.places;
    this.svg = element("svg", { viewBox: `-2 -2 ${width + 4} ${height + 4}`, role: "group" });
    this.svg.setAttribute("aria-label", "Network of 13 hosts in three subnets");
    this.svg.append(this.patterns());
    this.zones = {};
    for (const [name, { x, y, ...size }] of Object.entries(zones)) {
      this.zones[name] = element("rect", { class: "zone", x, y, rx: 10, ...size });
      const title = element("text", { class: "zone-name", x: x + ZONE.padding, y: y + 24 }, name);
      this.svg.append(this.zones[name], title);
    }
    for (const [from, to] of this.network.links) {
      const d = route(this.places.hosts[from], this.places.hosts[to]);
      this.svg.append(element("path", { class: "link", d }));
    }
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
    const [redKind, redTarget] = turn.red.split(" ");
    for (const [name, zone] of Object.entries(this.zones)) {
      zone.classList.toggle("swept", redKind === "DiscoverRemoteSystems" && redTarget === name);
    }
    this.layer.replaceChildren(...this.attack(turn, redTarget), this.service(turn));
    hosts.forEach((host, index) => this.layer.append(this.card(host, index, turn)));
    this.layer.append(...this.tags(turn, redKind, redTarget));
  }

  attack(turn, target) {
    const { hosts } = this.places;
    const { foothold } = this.network;
    if (!(target in hosts) || target === foothold) return [];
    const failed = turn.red_success === false ? " failed" : "";
    return [element("path", { class: `attack${failed}`, d: route(hosts[foothold], hosts[target]) })];
  }

  service(turn) {
    const zone = this.places.zones[this.network.zones.at(-1).name];
    const place = { x: zone.x + zone.width - ZONE.padding, y: zone.y + 24 };
    const text = turn.stopped ? "OTService stopped" : "OTService runs";
    return element("text", { class: `service ${turn.stopped ? "stopped" : ""}`, ...place }, text);
  }

  card(host, index, turn) {
    const { x, y } = this.places.hosts[host];
    const truth = ACCESS[turn.access[index]];
    const belief = BELIEF[turn.belief[index]];
    const decoys = turn.decoys[index];
    const spoken = [
      `${host}: truth ${WORDS[truth]}, blue sees ${WORDS[belief]}`,
      ACTIVITY[turn.activity[index]].replace("saw", "blue saw an attempt to"),
      decoys.length ? `decoys ${decoys.join(", ")}` : "",
    ];
    const label = spoken.filter(Boolean).join("; ");
    const group = element("g", { transform: `translate(${x} ${y})`, role: "img", "aria-label": label });
    group.classList.toggle("by-blue", turn.blue_target === host);
    group.classList.toggle("by-red", turn.red.split(" ")[1] === host);
    group.classList.toggle("broken", turn.stopped && host === this.network.target);
    group.dataset.host = host;
    group.append(
      element("title", {}, label),
      element("rect", { class: "card", width: CARD.width, height: CARD.height, rx: 8 }),
      element("circle", { class: `known ${KNOWN[turn.known[index]]}`, cx: 15, cy: 18, r: 3.6 }),
      element("text", { class: "name", x: 26, y: 22.5 }, host),
      ...this.cell(10, "truth", truth),
      ...this.cell(CARD.width - 10 - CELL_WIDTH, "blue sees", belief),
    );
    if (turn.activity[index]) group.append(this.saw(ACTIVITY[turn.activity[index]]));
    // Blue cannot clear the foothold: truth and belief always differ there.
    if (host === this.network.foothold) group.append(this.note("red's foothold"));
    else if (truth !== belief) group.append(this.unlike());
    if (decoys.length) group.append(this.decoys(decoys));
    return group;
  }

  cell(x, caption, level) {
    const size = { width: CELL_WIDTH, height: 33, rx: 4 };
    return [
      element("rect", { class: `cell ${level}-cell`, x, y: 32, ...size }),
      element("text", { class: `caption on-${level}`, x: x + 7, y: 44 }, caption),
      element("text", { class: `value on-${level}`, x: x + 7, y: 58.5 }, WORDS[level]),
    ];
  }

  saw(text) {
    const width = text.length * 5.4 + 10;
    const x = CARD.width - 10 - width;
    return element(
      "g",
      { class: "saw" },
      element("rect", { x, y: 10, width, height: 16, rx: 4 }),
      element("text", { x: x + width / 2, y: 21.5 }, text),
    );
  }

  unlike() {
    const place = { cx: CARD.width / 2, cy: 48.5, r: 7.5 };
    const text = element("text", { x: CARD.width / 2, y: 52.5 }, "≠");
    return element("g", { class: "unlike-mark" }, element("circle", place), text);
  }

  note(text) {
    return element("text", { class: "decoys", x: CARD.width - 10, y: 22, "text-anchor": "end" }, text);
  }

  decoys(names) {
    const shown = names.slice(0, DECOYS_SHOWN).join(", ");
    const more = names.length > DECOYS_SHOWN ? ` +${names.length - DECOYS_SHOWN}` : "";
    const diamond = element("tspan", {}, "◆ ");
    return element("text", { class: "decoys", x: 10, y: 79.5 }, diamond, shown + more);
  }

  /** Short names of both actions, on the upper edge of their targets. */
  tags(turn, redKind, redTarget) {
    const tags = [];
    const blueWord = turn.blue.split(" ")[0].replace(/^Decoy/, "decoy ").toLowerCase();
    const at = this.places.hosts[turn.blue_target ?? this.network.defender];
    tags.push(this.tag("blue", blueWord, turn.blue_success, at.x + CARD.width - 8, at.y, "end"));
    const word = RED_WORDS[redKind] ?? redKind;
    const zone = this.places.zones[redTarget];
    const host = this.places.hosts[redTarget] ?? this.places.hosts[this.network.foothold];
    const [x, y] = zone ? [zone.x + zone.width / 2 - 30, zone.y + 20] : [host.x + 8, host.y];
    tags.push(this.tag("red", word, turn.red_success, x, y, "start"));
    return tags;
  }

  tag(side, word, success, x, y, anchor) {
    const text = word + mark(success);
    const width = text.length * 6 + 14;
    const left = anchor === "end" ? x - width : x;
    const failed = success === false ? " failed" : "";
    return element(
      "g",
      { class: `tag ${side}${failed}` },
      element("rect", { x: left, y: y - 11, width, height: 17, rx: 8.5 }),
      element("text", { x: left + width / 2, y: y + 1.5 }, text),
    );
  }
}
