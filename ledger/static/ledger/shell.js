// What django-unfold's shell lets one do by mouse and by sight only: here by keyboard and by ear too.
// Its menus are <a> without href, <div> and <span> that Alpine makes clickable; its icons are words in a font of symbols.
"use strict";
(() => {
  const MOUSE_ONLY = "[x-on\\:click]:not(a[href], button, input, [role=button], #changelist-filter-close)";
  const ICON = ".material-symbols-outlined";
  const NAMES = { close: "Close the navigation", visibility: "Show the password", search: "Search", more_vert: "More", lock_open_right: "Start" };
  const MENU = "nav[x-on\\:click\\.outside], #changelist-filter, #nav-sidebar";
  const STOPS = "a[href], button, input:not([type=hidden]), [role=button]";
  let opener = null; // of the menu that was opened by keyboard last

  function complete(part) {
    for (const each of part.querySelectorAll(MOUSE_ONLY)) {
      each.tabIndex = 0;
      each.setAttribute("role", "button");
      if (each.matches("[x-on\\:click*=openTheme]")) each.setAttribute("aria-label", "Theme");
    }
    for (const icon of part.querySelectorAll(ICON)) {
      const control = icon.closest("a, button, [role=button]");
      const text = [...(control?.childNodes ?? [])].filter((node) => node !== icon).map((node) => node.textContent);
      const name = control?.title || NAMES[icon.textContent.trim()];
      if (control && name && !text.join("").trim()) control.setAttribute("aria-label", name);
      if (icon !== control) icon.setAttribute("aria-hidden", "true");
    }
    part.querySelector("#searchbar")?.setAttribute("aria-label", "Search");
    part.querySelector("#main")?.setAttribute("role", "main");
    part.querySelector("#content")?.setAttribute("tabindex", "-1");
    part.querySelector("#result_list")?.setAttribute("aria-label", document.title.split("|")[0].trim());
    for (const region of part.querySelectorAll(".simplebar-content-wrapper"))
      region.setAttribute("aria-label", region.closest("#nav-sidebar") ? "Navigation, scrollable" : "List, scrollable");
    const nav = part.querySelector("#nav-sidebar-inner");
    nav?.setAttribute("aria-label", "Pages of the lab");
    for (const link of nav?.querySelectorAll("a.active") ?? []) link.setAttribute("aria-current", "page");
  }

  const shown = (element) => element.checkVisibility({ visibilityProperty: true });
  const menuOf = (control) => [...control.closest("[x-data]").querySelectorAll(MENU)].find(shown);

  function enter(control) {
    const before = menuOf(control);
    control.click();
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const menu = menuOf(control);
      if (!menu || menu === before || menu.contains(control)) return;
      opener = control;
      [...menu.querySelectorAll(STOPS)].find(shown)?.focus();
    }));
  }

  function leave() {
    const menu = opener && [...opener.closest("[x-data]").querySelectorAll(MENU)].find((each) => each.contains(document.activeElement));
    if (!menu) return;
    if (menu.id === "nav-sidebar") opener.click();
    else document.body.click(); // a click outside closes it
    opener.focus();
    opener = null;
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
    if (event.key !== "Enter" && event.key !== " ") return;
    const control = event.target.closest?.("[role=button][x-on\\:click], button[aria-expanded]");
    if (!control || (control.matches("button") && event.key === " ")) return; // which the browser makes a click
    event.preventDefault();
    enter(control);
  });
  // unfold looks at the system's colour scheme only when a page is loaded
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    if ((localStorage.getItem("adminTheme") ?? '"auto"') === '"auto"') document.documentElement.classList.toggle("dark", event.matches);
  });
  document.addEventListener("alpine:initialized", () => complete(document));
  document.addEventListener("htmx:load", (event) => complete(event.detail.elt));
})();
