// The experiment without leaving the page: it is started, then looked at until it is over. Without this script the form
// leads to the same page, with the run in its address.
"use strict";
(() => {
  const live = document.getElementById("live");
  const LOOK_EVERY = 150; // ms

  async function part(address, options = {}) {
    const answer = await fetch(address, { ...options, headers: { "X-Requested-With": "fetch" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return page.getElementById("run");
  }

  function show(fresh) {
    const chosen = document.activeElement?.id;
    live.replaceChildren(fresh);
    if (chosen) document.getElementById(chosen)?.focus();
    const said = fresh.dataset.said;
    if (said) document.getElementById("announced").textContent = said;
  }

  async function watch() {
    for (;;) {
      const next = live.querySelector("#run")?.dataset.next;
      if (!next) return;
      await new Promise((go) => setTimeout(go, LOOK_EVERY));
      const fresh = await part(next);
      if (!fresh) return;
      show(fresh);
    }
  }

  live.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (live.querySelector("[data-next]")) return; // it runs already
    const form = event.target;
    try {
      const fresh = await part(form.action, { method: "POST", body: new FormData(form) });
      if (!fresh) throw new Error("no answer");
      show(fresh);
      await watch();
    } catch {
      form.submit(); // the page of the error says more
    }
  });

  for (const form of document.querySelectorAll("[data-at-once]"))
    form.addEventListener("change", () => form.requestSubmit());
  watch();
})();
