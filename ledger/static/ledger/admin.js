// Times are shown in this browser's zone from the next page on (ledger/http/visitor_zone.py); until then in UTC.
document.cookie = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/admin/; max-age=31536000; samesite=lax`;
// Lists the chosen files below the drop zone, says when they are too large to be sent, and lets one drop files onto it.
function sizeOf(files) {
  return Array.from(files).reduce((sum, file) => sum + file.size, 0);
}
document.addEventListener("change", (event) => {
  const list = event.target.closest(".drop")?.querySelector("[data-chosen-files]");
  list?.replaceChildren(
    ...Array.from(event.target.files, (file) => {
      const item = document.createElement("li");
      const name = document.createElement("bdi"); // a name may turn the direction of what follows
      name.textContent = file.name.replace(/[\p{Cc}\p{Bidi_Control}]/gu, "");
      item.append(name, `, ${file.size.toLocaleString("en")} bytes`);
      return item;
    }),
  );
  if (list && sizeOf(event.target.files) > Number(list.dataset.most)) {
    const item = document.createElement("li");
    item.className = "alert";
    item.textContent = `${[sizeOf(event.target.files), Number(list.dataset.most)].map((size) => size.toLocaleString("en")).join(" bytes in all, the limit is ")} bytes: split the import`;
    list.append(item);
  }
});
document.addEventListener("submit", (event) => {
  const tooLarge = event.target.querySelector(".chosen .alert");
  if (!tooLarge) return;
  const input = tooLarge.closest(".drop").querySelector("input");
  if (event.submitter?.name === "samples") {
    input.value = ""; // the samples instead of them
    return;
  }
  event.preventDefault(); // the server would cut it off without a page
  input.focus();
});
for (const kind of ["dragover", "drop"]) {
  document.addEventListener(kind, (event) => {
    const input = event.target.closest?.(".drop")?.querySelector("input");
    if (!input) return;
    event.preventDefault();
    if (kind === "drop") {
      input.files = event.dataTransfer.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    }
  });
}
document.addEventListener("DOMContentLoaded", () => {
  // unfold's own listener wants a text field beside each file input; this mark tells it that there is one already
  for (const input of document.querySelectorAll(".drop input")) input.hasChangeListener = true;
});
// What htmx looks at again and again is replaced whole: it keeps how far it was scrolled, and its news are said aloud.
const scrolled = new Map();
document.addEventListener("htmx:beforeSwap", (event) => {
  for (const each of event.detail.target.querySelectorAll(".scroll")) scrolled.set(each.id, each.scrollLeft);
});
document.addEventListener("htmx:load", (event) => {
  for (const each of event.detail.elt.querySelectorAll(".scroll")) each.scrollLeft = scrolled.get(each.id) ?? 0;
  const said = event.detail.elt.dataset.said;
  const announced = document.getElementById("announced");
  if (said && announced.textContent !== said) announced.textContent = said;
});
// Of the options of the workloads only those of the chosen one are shown; without this script all are, under their names.
function showOptions() {
  const chosen = document.getElementById("id_workload")?.value;
  for (const each of document.querySelectorAll("[data-workload]")) each.hidden = each.dataset.workload !== chosen;
}
document.addEventListener("DOMContentLoaded", showOptions);
document.addEventListener("change", (event) => {
  if (event.target.id === "id_workload") showOptions();
});
