// Player of recorded games: selects the step and updates drawing, chart and log.

const PATHS = { play: "M4 2l10 6-10 6z", pause: "M3 2h4v12H3zM9 2h4v12H9z" };
const FATES = { true: "succeeded", false: "failed", null: "" };

function signed(value, digits = 1) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text.replace("-", "−");
}

function byId(id) {
  return document.getElementById(id);
}

function exploitWords(turn) {
  if (!turn.exploit) return "";
  const seen = { true: ", detected", false: ", not detected", null: "" }[turn.detected ?? null];
  return turn.exploit + seen;
}

/** The red agents that blue still thinks possible, the most probable first. */
function attackerWords(turn) {
  const shares = Object.entries(turn.believed_reds ?? {}).sort(([, one], [, other]) => other - one);
  return shares.length ? `believes: ${shares.map(([red, percent]) => `${red} ${percent} %`).join(", ")}` : "";
}

class Replay {
  constructor({ scenarios, games }) {
    this.scenarios = scenarios;
    this.games = games;
    this.timer = null;
    byId("player").hidden = false;
    this.chart = new Chart(byId("chart"), (step) => this.pauseAt(step));
    this.offerGames();
    this.listen();
    this.load(0);
  }

  offerGames() {
    const runs = [...new Set(this.games.map((game) => game.run))];
    for (const run of runs) {
      const group = document.createElement("optgroup");
      group.label = run;
      this.games.forEach((game, number) => {
        const title = `${runs.length > 1 ? `${run}: ` : ""}${game.title} (${signed(game.total)})`;
        if (game.run === run) group.append(new Option(title, number));
      });
      byId("game").append(...(runs.length > 1 ? [group] : group.children));
    }
  }

  listen() {
    byId("game").addEventListener("change", (event) => this.load(Number(event.target.value)));
    byId("slider").addEventListener("input", (event) => this.pauseAt(Number(event.target.value)));
    byId("back").addEventListener("click", () => this.pauseAt(this.step - 1));
    byId("forward").addEventListener("click", () => this.pauseAt(this.step + 1));
    byId("play").addEventListener("click", () => this.toggle());
    byId("speed").addEventListener("change", () => this.timer && this.play());
    byId("log").addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (row) this.pauseAt(row.sectionRowIndex);
    });
    document.addEventListener("keydown", (event) => this.key(event));
    // A control that was scrolled out of view gives up the focus: keys scroll the page again.
    new IntersectionObserver((changes) => {
      const isOutOfView = !changes.at(-1).isIntersecting;
      if (isOutOfView && byId("player").contains(document.activeElement)) document.activeElement.blur();
    }).observe(byId("player"));
  }

  /** Whether at least half of the drawing is in view, or half of the window shows it. */
  isInView() {
    const { top, bottom, height } = byId("drawing").getBoundingClientRect();
    return Math.min(bottom, innerHeight) - Math.max(top, 0) >= Math.min(height, innerHeight) / 2;
  }

  /** Handle keys that the focused control does not use itself. */
  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest("select, input")) return;
    const isOurs = event.target === document.body ? this.isInView() : byId("player").contains(event.target);
    if (!isOurs) return;
    const moves = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key in moves) this.pauseAt(this.step + moves[event.key]);
    else if (event.key === " " && !event.target.closest("button, summary, a")) this.toggle();
    else return;
    event.preventDefault();
  }

  load(number) {
    this.pause();
    this.game = this.games[number];
    this.drawing?.remove();
    this.drawing = new Drawing(byId("drawing"), this.scenarios[this.game.scenario]);
    document.querySelector(".move.green").hidden = !this.game.turns.some((turn) => turn.green);
    let sum = 0;
    this.sums = this.game.turns.map((turn) => (sum += turn.reward));
    byId("slider").max = this.game.turns.length - 1;
    byId("log").replaceChildren(...this.game.turns.map((turn) => this.row(turn)));
    this.chart.load(this.sums);
    this.go(0);
  }

  row(turn) {
    const row = document.createElement("tr");
    const cell = (text, kind = "") => {
      row.insertCell().textContent = text;
      row.lastChild.className = kind;
    };
    const success = (value) => {
      const [text, kind] = { true: ["✓", "ok"], false: ["✗", "no"], null: ["", "unclear"] }[value];
      cell(text, kind);
    };
    cell(turn.step + 1);
    cell(turn.blue, turn.blue_target ? "" : "idle");
    success(turn.blue_success);
    cell(turn.red);
    success(turn.red_success);
    cell(exploitWords(turn));
    cell(signed(turn.reward), turn.reward < 0 ? "loss" : "idle");
    return row;
  }

  toggle() {
    if (this.timer) this.pause();
    else this.play();
  }

  play() {
    this.pause();
    if (this.step === this.game.turns.length - 1) this.go(0);
    this.timer = setInterval(() => this.advance(), 1000 / Number(byId("speed").value));
    this.button("Pause", PATHS.pause);
  }

  advance() {
    this.go(this.step + 1);
    if (this.step === this.game.turns.length - 1) this.pause();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.button("Play", PATHS.play);
  }

  button(label, path) {
    byId("play").setAttribute("aria-label", label);
    byId("play").querySelector("path").setAttribute("d", path);
  }

  pauseAt(step) {
    this.pause();
    this.go(step);
    byId("spoken").textContent = this.sentence();
  }

  go(step) {
    this.step = Math.min(Math.max(step, 0), this.game.turns.length - 1);
    const turn = this.game.turns[this.step];
    this.drawing.show(this.game.hosts, turn);
    this.chart.show(this.step);
    this.showMoves(turn);
    this.showPlace();
  }

  showMoves(turn) {
    byId("reward").textContent = signed(turn.reward);
    byId("reward").className = turn.reward < 0 ? "loss" : "";
    byId("total").textContent = signed(this.sums[this.step]);
    byId("blue").textContent = turn.blue;
    byId("blue-fate").textContent = FATES[turn.blue_success];
    byId("attacker").textContent = attackerWords(turn);
    byId("red").textContent = turn.red;
    byId("green").textContent = turn.green ? `PortScan ${turn.green}` : "–";
    byId("red-fate").textContent = [FATES[turn.red_success], exploitWords(turn)].filter(Boolean).join("; ");
  }

  showPlace() {
    const words = `${this.step + 1} of ${this.game.turns.length}`;
    byId("slider").value = this.step;
    byId("slider").setAttribute("aria-valuetext", `step ${words}`);
    byId("count").textContent = words;
    const log = byId("log");
    log.querySelector(".now")?.classList.remove("now");
    const row = log.rows[this.step];
    row.classList.add("now");
    const box = log.closest(".log");
    const top = row.offsetTop - box.clientHeight / 2;
    if (Math.abs(top - box.scrollTop) > box.clientHeight / 4) box.scrollTop = top;
  }

  sentence() {
    const turn = this.game.turns[this.step];
    const blue = `blue: ${turn.blue} ${FATES[turn.blue_success]}`;
    const red = `red: ${turn.red} ${FATES[turn.red_success]} ${exploitWords(turn)}`;
    return `Step ${this.step + 1}. ${blue}. ${red}. Reward ${signed(turn.reward)}.`;
  }
}

const recorded = JSON.parse(byId("recorded").textContent);
if (recorded.games.length) new Replay(recorded);
