// Steps through one schedule, forward and back. Without this script the page shows all steps in order.
"use strict";
(() => {
  const steps = [...document.querySelectorAll(".step")];
  const [slider, where, now] = ["slider", "where", "now"].map((id) => document.getElementById(id));
  let current = 0;

  function show(number) {
    current = Math.min(Math.max(number, 0), steps.length - 1);
    steps.forEach((step, place) => {
      step.classList.toggle("current", place === current);
      step.classList.toggle("later", place > current);
      if (place === current) step.setAttribute("aria-current", "step");
      else step.removeAttribute("aria-current");
    });
    slider.value = current;
    where.textContent = `${current} / ${steps.length - 1}`;
    slider.setAttribute("aria-valuetext", where.textContent);
    now.replaceChildren(...steps[current].querySelector(".after").cloneNode(true).childNodes);
    steps[current].scrollIntoView({ block: "nearest" });
    history.replaceState(null, "", `#step-${current}`);
    for (const button of document.querySelectorAll("#controls button")) {
      const end = button.value < 0 ? current === 0 : current === steps.length - 1;
      button.setAttribute("aria-disabled", end); // a disabled button would lose the focus
    }
  }

  const moves = { ArrowLeft: () => current - 1, ArrowRight: () => current + 1, Home: () => 0, End: () => steps.length };
  document.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    if (!move || event.altKey || event.ctrlKey || event.metaKey || event.target === slider) return;
    event.preventDefault();
    show(move());
  });
  const far = { "-2": 0, "2": steps.length };
  document.getElementById("controls").addEventListener("click", (event) => {
    const by = event.target.closest("button")?.value;
    if (by) show(far[by] ?? current + Number(by));
  });
  slider.addEventListener("input", () => show(Number(slider.value)));
  steps.forEach((step, place) => step.addEventListener("click", () => show(place)));
  window.addEventListener("hashchange", () => show(asked()));

  const asked = () => Number(/^#step-(\d+)$/.exec(location.hash)?.[1] ?? 0);
  slider.max = steps.length - 1;
  document.body.classList.add("stepping");
  show(asked());
})();
