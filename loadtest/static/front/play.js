// You are the scheduler: walks through the positions that the explorer has executed. Nothing is computed here but the
// way: what a command answers, what the servers hold and how an order ends stands in the data (loadtest/explorer/graph.py).
"use strict";
(() => {
  const MOST_KEYS = 9;
  const PACE = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 450; // ms between two moves that are shown
  const MONEY = new Set(["lost", "created", "oversold"]);
  const WORDS = { unbroken: "kept" };
  const at = (id) => document.getElementById(id);
  const levels = JSON.parse(at("levels").dataset.levels);
  const loaded = new Map();
  let level = "", graph = null, path = [], showing = 0;

  // -- the data ------------------------------------------------------------------------------------------------------

  async function load(slug) {
    if (!loaded.has(slug)) {
      const inline = at(`graph-${slug}`);
      const data = inline ? JSON.parse(inline.textContent) : await (await fetch(levels[slug].data)).json();
      loaded.set(slug, data);
    }
    return loaded.get(slug);
  }
  const text = (of, number) => of.texts[number];
  const movesOf = (of, number) => of.nodes[number].moves.map(([kind, who, command, line, to, steps]) => ({ kind, who, command: text(of, command), line: text(of, line), to, steps: steps.map(([by, asked, reply]) => ({ by, asked: text(of, asked), reply: text(of, reply) })) }));
  const walked = (of, choices) => {
    const places = [0];
    for (const choice of choices) {
      const move = of.nodes[places.at(-1)].moves[choice];
      if (!move) break;
      places.push(move[4]);
    }
    return places;
  };
  const held = (of, number) => of.states[of.nodes[number].held];

  // -- words ---------------------------------------------------------------------------------------------------------

  // what a command is for; of several that fit, the first
  const MEANS = [
    [/^SELECT .* FOR UPDATE$/, "locks the row and reads the balance"],
    [/^SELECT balance/, "reads the balance"],
    [/^UPDATE account SET balance = (\d+).* WHERE \(.*version/, "writes $1, if the version is still the one that it read"],
    [/^UPDATE account SET balance = (\d+).* WHERE \(fence/, "writes $1, if its lock's number is still the newest"],
    [/^UPDATE account SET balance = (\d+)/, "writes $1"],
    [/^UPDATE account SET fence/, "shows the account its lock's number"],
    [/^INSERT entry/, "records its entry"],
    [/^BEGIN$/, "begins a transaction"],
    [/^COMMIT$/, "commits"],
    [/^ROLLBACK$/, "rolls back"],
    [/^GET /, "looks whether the lock is free"],
    [/^SETNX |^SET .* NX|^EVALSHA \S+ 2 /, "takes the lock, if it is free"],
    [/^SET /, "sets the lock"],
    [/^EVALSHA \S+ 1 [^{]/, "releases the lock, if it is still its own"],
    [/^DEL /, "releases the lock"],
  ];
  function meaning(command) {
    const [pattern, words] = MEANS.find(([each]) => each.test(command)) ?? [];
    return pattern ? words.replace("$1", command.match(pattern)[1]) : "";
  }
  // "10 lost with 1 operation of 2 that were acknowledged; the worst: A and B …" is for a history of thousands
  const short = (told) => told.replace(/^(\d+ lost) with (\d+) operation.*? acknowledged; the worst: /, (_, lost, many) => (many === "1" ? "" : `${lost}. `));

  const seconds = (ms) => `${(ms / 1000).toLocaleString("en", { maximumFractionDigits: 1 })} s`;
  function named(of, from, move) {
    const who = move.who.replace(/\.\d+$/, "'s second thread");
    const does = `${who} ${meaning(move.command) || `sends ${move.command}`}`;
    const passes = seconds(of.nodes[move.to].at - of.nodes[from].at);
    return {
      step: move.command === "begins" ? `${who} begins` : does,
      tick: `let ${passes} pass`,
      stop: "nothing further happens",
      pause: `${who.replaceAll("+", " and ")} stands still for ${passes}`,
      resume: `${who} goes on`,
      victim: `the server aborts ${who}`,
      crash: `${who} crashes`,
      "renewal-dies": `${who}: the thread that renews the lease dies`,
      "worker-dies-renewal-lives": `${who} dies, the thread that renews its lease lives on`,
      "lost-reply": `${does}; the reply is lost`,
      lag: `${does}; it never reaches the replica`,
      failover: `${who} fails over to its replica`,
      "clock-jump": `${who}: the clock jumps`,
    }[move.kind] ?? `${move.kind} ${who}`;
  }
  const FAULTS = new Set(["pause", "crash", "renewal-dies", "worker-dies-renewal-lives", "lost-reply", "lag", "clock-jump"]);
  const STANDS = { ready: "", done: "done", failed: "was told an error", dead: "crashed", paused: "stands still", waits: "waits in the server", sleeps: "sleeps" };

  // -- elements ------------------------------------------------------------------------------------------------------

  function made(tag, options = {}, ...inside) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(options)) if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    element.append(...inside);
    return element;
  }

  function laneRow(of, from, move) {
    const fault = FAULTS.has(move.kind) || move.kind === "failover";
    const told = move.steps.length ? move.steps : [move.kind === "step" ? { by: move.who[0], asked: move.command, reply: "waits in the server" } : { by: move.who[0], asked: named(of, from, move), reply: "" }];
    return told.map((step) => {
      const lane = step.by === "A" || step.by === "B" || step.by === "C" ? step.by : "";
      const answer = step.reply && made("span", { class: "reply" }, ` → ${step.reply}`);
      return made("li", { class: `${lane ? `lane-${lane}` : "server"}${fault ? " fault" : ""}` }, made("b", {}, lane || "server"), ...worded(step.asked), answer || "");
    });
  }

  function worded(command) {
    const words = meaning(command);
    return words ? [`${words} `, made("code", { class: "sent" }, command)] : [made("code", {}, command)];
  }

  function tree(entries, balance) {
    if (!entries.length) return made("p", { class: "note" }, "No entry is committed yet.");
    const onChain = new Set();
    for (let id = entries.find((each) => each.head === "true")?.id; id; id = entries.find((each) => each.id === id)?.parent) onChain.add(id);
    const branch = (parent) => {
      const children = entries.filter((each) => each.parent === parent);
      return children.length ? made("ul", {}, ...children.map((each) => {
        const gone = !onChain.has(each.id);
        const who = each.key.replace("worker-", "");
        const over = gone && children.find((other) => onChain.has(other.id));
        return made("li", { class: gone ? "gone" : "there" }, made("span", {}, `${who} read ${each.before}, wrote ${each.after}`), gone ? made("em", {}, over ? ` overwritten by ${over.key.replace("worker-", "")}, who had read ${over.before} too` : " overwritten") : each.head === "true" ? made("em", {}, ` the balance: ${balance}`) : "", branch(each.id));
      })) : "";
    };
    const forked = entries.some((each) => !onChain.has(each.id));
    return made("div", { class: forked ? "tree forked" : "tree" }, made("span", {}, "opening 100"), branch(""));
  }

  function things(state) {
    const rows = [];
    for (const key of state.keys) {
      if (key.key.startsWith("ledger:")) continue;
      const left = key.ttl_ms === null ? "no lease" : `${seconds(key.ttl_ms)} left`;
      rows.push(made("dt", {}, made("code", {}, key.key)), made("dd", { class: key.by ? `of-${key.by}` : "" }, `${key.by ? `${key.by}'s, ` : ""}${key.value.slice(0, 24)}, ${left}`, key.ttl_ms === null ? "" : made("meter", { min: 0, max: 30000, value: Math.min(key.ttl_ms, 30000), "aria-label": `lease of ${key.key}` })));
    }
    for (const [name, status] of Object.entries(state.rows)) rows.push(made("dt", {}, `row ${name}`), made("dd", {}, status));
    for (const [task, command] of Object.entries(state.waiting)) rows.push(made("dt", {}, `${task} waits`), made("dd", {}, made("code", {}, command)));
    for (const [who, stands] of Object.entries(state.workers)) if (STANDS[stands]) rows.push(made("dt", {}, who), made("dd", {}, STANDS[stands]));
    return rows.length ? rows : [made("dt", {}, "locks"), made("dd", {}, "none")];
  }

  // -- the page ------------------------------------------------------------------------------------------------------

  const places = () => walked(graph, path);
  function render(focusMoves) {
    const trail = places();
    path = path.slice(0, trail.length - 1);
    const here = trail.at(-1), node = graph.nodes[here], state = held(graph, here);
    at("title").textContent = levels[level].title;
    at("rules").textContent = levels[level].rules;
    at("total").textContent = levels[level].total;
    at("past").dataset.lanes = levels[level].lanes;
    for (const link of document.querySelectorAll("#level-list a")) link.toggleAttribute("aria-current", link.dataset.level === level);
    at("past").replaceChildren(...path.flatMap((choice, place) => laneRow(graph, trail[place], movesOf(graph, trail[place])[choice])));
    at("balance").textContent = Object.values(state.balances).join(", ");
    at("clock").textContent = seconds(node.at);
    at("held").replaceChildren(...things(state));
    at("tree").replaceChildren(tree(state.entries, Object.values(state.balances)[0]));
    const moves = movesOf(graph, here);
    at("moves").replaceChildren(...moves.map((move, number) => made("li", {}, button(move, number, here))));
    ended(node);
    at("back").setAttribute("aria-disabled", !path.length);
    at("where").textContent = path.length === 1 ? "1 move" : `${path.length} moves`;
    const hash = `#${level}${path.length ? `/${path.map((choice) => choice.toString(36)).join("")}` : ""}`;
    if (location.hash !== hash) history.replaceState(null, "", hash);
    beside();
    if (focusMoves) (at("moves").querySelector("button") ?? at("back")).focus({ preventScroll: true });
    at("past").lastElementChild?.scrollIntoView({ block: "nearest" });
  }

  function button(move, number, here) {
    const fault = FAULTS.has(move.kind);
    const element = made("button", { class: `move ${fault ? "fault" : /^[ABC]/.test(move.who) ? `lane-${move.who[0]}` : "server"}`, type: "button" });
    if (number < MOST_KEYS) element.append(made("kbd", { "aria-hidden": "true" }, String(number + 1)));
    element.append(made("span", {}, named(graph, here, move)));
    if (meaning(move.command)) element.append(made("code", { class: "sent" }, move.command));
    if (move.line && move.kind === "step") element.append(made("small", {}, move.line));
    element.addEventListener("click", () => go(number));
    return element;
  }

  function ended(node) {
    const word = node.end && (WORDS[node.end.word] ?? node.end.word);
    at("end").hidden = !node.end;
    at("end").className = `ending ${word ?? ""}`;
    if (!node.end) return;
    const told = node.end.told.length ? node.end.told.map(short) : ["Every acknowledged posting is in the balance. Step back and try another order."];
    at("end").replaceChildren(made("h3", {}, made("span", { class: `word ${word}` }, word)), ...told.map((each) => made("p", {}, each)), nextLevel());
    say(`${word}. ${told[0]}`);
  }

  function nextLevel() {
    const names = Object.keys(levels);
    const name = names[names.indexOf(level) + 1];
    return name ? made("p", {}, made("a", { href: `#${name}` }, `Next level: ${levels[name].title}, ${levels[name].hint}`)) : "";
  }

  function say(words) {
    at("said").textContent = words;
  }

  function go(choice) {
    const trail = places();
    const move = movesOf(graph, trail.at(-1))[choice];
    if (!move) return;
    path.push(choice);
    at("hint").textContent = "";
    say([...(move.steps.length ? move.steps.map((step) => `${step.by || "server"} ${meaning(step.asked) || step.asked}. ${step.reply}`) : [named(graph, trail.at(-1), move)])].join(". "));
    render(true);
  }

  function back() {
    stopShowing();
    if (!path.length) return;
    path.pop();
    at("hint").textContent = "";
    say("One step back.");
    render(true);
  }

  // -- how it loses ---------------------------------------------------------------------------------------------------

  function nearest(of, from, wanted) {
    const came = new Map([[from, null]]);
    const queue = [from];
    for (let number = 0; number < queue.length; number++) {
      const place = queue[number];
      if (of.nodes[place].end && wanted(of.nodes[place].end.word)) {
        const choices = [];
        for (let back = place; came.get(back); back = came.get(back)[0]) choices.unshift(came.get(back)[1]);
        return choices;
      }
      of.nodes[place].moves.forEach((move, choice) => {
        if (!came.has(move[4])) {
          came.set(move[4], [place, choice]);
          queue.push(move[4]);
        }
      });
    }
    return null;
  }

  function lose() {
    stopShowing();
    const here = places().at(-1);
    const way = nearest(graph, here, (word) => MONEY.has(word)) ?? nearest(graph, here, (word) => word === "stalled");
    if (way === null) {
      const all = `${levels[level].schedules.toLocaleString("en")} orders`;
      const never = nearest(graph, 0, (word) => word !== "unbroken") === null;
      hint(never ? `It cannot be broken within these bounds. All ${all} were tried, in ${graph.nodes.length.toLocaleString("en")} positions, and none of them loses money or stalls.` : "From here no order loses. Step back, and ask again.");
      return;
    }
    if (!way.length) return;
    hint(`${way.length} more moves.`);
    const turn = ++showing;
    const next = () => {
      if (turn !== showing || !way.length) return;
      path.push(way.shift());
      render(false);
      if (way.length) setTimeout(next, PACE);
      else at("hint").textContent = "";
    };
    next();
  }
  const stopShowing = () => { showing += 1; };
  function hint(words) {
    at("hint").textContent = words;
    say(words);
  }

  // -- the same order under another strategy ---------------------------------------------------------------------------

  async function beside() {
    const other = at("other").value;
    at("compared").replaceChildren();
    if (!other) return;
    const of = await load(other), trail = places();
    let place = 0, left = 0;
    const rows = [];
    path.forEach((choice, number) => {
      const mine = movesOf(graph, trail[number])[choice];
      const theirs = movesOf(of, place);
      const same = theirs.find((move) => move.kind === mine.kind && move.who === mine.who);
      if (!same) { left += 1; return; }
      rows.push(...laneRow(of, place, same));
      place = same.to;
    });
    const state = held(of, place), end = of.nodes[place].end;
    const word = end ? WORDS[end.word] ?? end.word : "not at its end yet";
    at("compared").replaceChildren(made("p", {}, `Balance ${Object.values(state.balances).join(", ")}: `, made("span", { class: `word ${word}` }, word), left ? ` (${left} of your moves do not come up there)` : ""), made("ol", { class: "past", tabindex: "0", "aria-label": "The same order there" }, ...rows), tree(state.entries, Object.values(state.balances)[0]));
  }

  // -- where one is ----------------------------------------------------------------------------------------------------

  async function open() {
    stopShowing();
    const [slug, moves = ""] = location.hash.slice(1).split("/");
    level = slug in levels ? slug : Object.keys(levels)[0];
    graph = await load(level);
    path = [...moves].map((letter) => parseInt(letter, 36)).filter((number) => !Number.isNaN(number));
    at("hint").textContent = "";
    render(false);
    document.querySelector("#level-list a[aria-current]").scrollIntoView({ block: "nearest", inline: "center" });
    document.body.dataset.ready = level;
  }

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("select, input")) return;
    if (/^[1-9]$/.test(event.key)) { stopShowing(); go(Number(event.key) - 1); }
    else if (event.key === "ArrowLeft") back();
    else return;
    event.preventDefault();
  });
  at("back").addEventListener("click", back);
  at("again").addEventListener("click", () => { stopShowing(); path = []; at("hint").textContent = ""; say("From the start."); render(true); });
  at("lose").addEventListener("click", lose);
  at("other").addEventListener("change", beside);
  window.addEventListener("hashchange", open);
  open();
})();
