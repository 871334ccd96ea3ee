// A choice among many ticks, by kind: a filter, whole kinds at once, and how many are chosen. Without this script every
// kind can be opened and ticked.
"use strict";
const NAMED = 6;
document.addEventListener("DOMContentLoaded", () => {
  for (const part of document.querySelectorAll("[data-choose]")) prepare(part);
});
function prepare(part) {
  const filter = part.querySelector("[data-choose-filter]");
  const boxes = [...part.querySelectorAll("input[type=checkbox]")];
  const labels = [...part.querySelectorAll(".choices label")];
  const kinds = [...part.querySelectorAll("details.kind")];
  const most = Number(part.dataset.most);
  let filtered = false;

  function count() {
    const names = boxes.filter((box) => box.checked).map((box) => box.value);
    const chosen = names.length;
    const more = chosen > NAMED ? ` and ${chosen - NAMED} more` : "";
    const told = part.querySelector("[data-choose-count]");
    told.textContent = `${chosen} chosen${most ? ` (at most ${most})` : ""}${chosen ? `: ${names.slice(0, NAMED).join(", ")}${more}` : ""}`;
    told.classList.toggle("bad", Boolean(most) && chosen > most);
    for (const kind of kinds) {
      const ticked = kind.querySelectorAll("input:checked").length;
      const all = kind.querySelectorAll("input").length;
      kind.querySelector("summary .note").textContent = ticked ? `${ticked} of ${all}` : String(all);
    }
  }

  function tick(chosen, value) {
    for (const box of chosen) box.checked = value;
    count();
    part.dispatchEvent(new Event("input", { bubbles: true })); // the estimate looks again
  }

  function search() {
    const words = filter.value.trim().toLowerCase();
    for (const label of labels) label.hidden = !label.textContent.toLowerCase().includes(words);
    for (const kind of kinds) {
      if (words && !filtered) kind.dataset.open = kind.open ? "yes" : "";
      const some = [...kind.querySelectorAll(".choices label")].some((label) => !label.hidden);
      kind.hidden = !some;
      kind.open = words ? some : filtered ? Boolean(kind.dataset.open) : kind.open;
    }
    filtered = words !== "";
    part.querySelector("[data-choose-nothing]").hidden = kinds.some((kind) => !kind.hidden);
  }

  filter.addEventListener("input", (event) => {
    event.stopPropagation(); // it changes nothing that the form sends
    search();
  });
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // which would send the form
  });
  part.addEventListener("change", count);
  part.addEventListener("click", (event) => {
    if (event.target.closest("[data-choose-none]")) tick(boxes, false);
    const kind = event.target.closest("[data-choose-kind]")?.closest("details");
    // those of the first six which are of this kind, too
    if (kind) tick((kind.dataset.kind ? labels.filter((label) => label.dataset.kind === kind.dataset.kind) : [...kind.querySelectorAll("label")]).filter((label) => !label.hidden).map((label) => label.querySelector("input")), true);
  });
  for (const each of part.querySelectorAll(".choose-bar, .choose-kind")) each.hidden = false;
  count();
}
