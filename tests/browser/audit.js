// What somebody without a mouse, without sight or with a phone would stumble over on this page: one line each.
() => {
  const found = new Set();
  for (const moving of document.getAnimations()) // a colour on its way is looked at where it arrives
    if (moving.effect.getComputedTiming().iterations !== Infinity) moving.finish();
  const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && element.getClientRects().length;
  const called = (element) => `<${element.tagName.toLowerCase()}> ${(element.id || element.textContent.trim()).slice(0, 40)}`;
  const name = (element) => {
    const copy = element.cloneNode(true);
    for (const hidden of copy.querySelectorAll("[aria-hidden=true]")) hidden.remove();
    return element.getAttribute("aria-label") || copy.textContent.trim();
  };
  if (document.documentElement.scrollWidth > innerWidth) found.add(`the page is ${document.documentElement.scrollWidth} px wide`);
  if (document.querySelectorAll("main, [role=main]").length !== 1) found.add("not one main part");
  for (const element of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (shown(element) && !element.labels?.length && !element.getAttribute("aria-label")) found.add(`no label: ${called(element)}`);
  for (const element of document.querySelectorAll("a[href], button, summary, [role=button]")) {
    if (shown(element) && !name(element)) found.add(`no name: ${called(element)}`);
    if (shown(element) && element.tabIndex < 0 && !element.disabled) found.add(`no keyboard: ${called(element)}`);
  }
  for (const element of document.querySelectorAll("[x-on\\:click]:not(a[href], button, input, [role=button])"))
    if (shown(element)) found.add(`by mouse only: ${called(element)}`);
  for (const icon of document.querySelectorAll(".material-symbols-outlined"))
    if (shown(icon) && !icon.closest("[aria-hidden=true], [aria-label]")) found.add(`an icon is read as a word: ${called(icon)}`);
  for (const table of document.querySelectorAll("table"))
    if (shown(table) && !table.caption && !table.getAttribute("aria-label")) found.add(`a table without a name: ${called(table)}`);
  for (const head of document.querySelectorAll("th"))
    if (shown(head) && !head.textContent.trim()) found.add(`an empty heading: ${called(head.closest("table"))}`);
  for (const drawing of document.querySelectorAll("svg:not([aria-hidden=true]):not(svg svg)"))
    if (drawing.getAttribute("role") !== "img" || !drawing.querySelector(":scope > title")?.textContent) found.add("a drawing without words");
  const ids = new Set();
  for (const { id } of document.querySelectorAll("[id]")) ids.has(id) ? found.add(`twice: #${id}`) : ids.add(id);
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const once = (ask) => { // a page has many elements, and few colours
    const known = new Map();
    return (what) => {
      if (!known.has(what)) known.set(what, ask(what));
      return known.get(what);
    };
  };
  const rgba = once((colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  });
  const style = once(getComputedStyle);
  const over = (upper, lower) => [0, 1, 2].map((part) => upper[part] * upper[3] + lower[part] * (1 - upper[3]));
  const light = (colour) => {
    const [red, green, blue] = colour.map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const below = once((element) => (element ? over(rgba(style(element).backgroundColor), below(element.parentElement)) : [255, 255, 255]));
  const opaque = once((element) => (element ? style(element).opacity * opaque(element.parentElement) : 1));
  const pictured = once((element) => element && (style(element).backgroundImage !== "none" || element.matches("select, .pygal-chart, [aria-hidden=true]") || pictured(element.parentElement)));
  for (const element of document.querySelectorAll("body *")) {
    const texts = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!texts || pictured(element) || !shown(element)) continue;
    const paper = below(element);
    const [red, green, blue, alpha] = rgba(element.closest("svg") ? style(element).fill : style(element).color);
    const ink = [red, green, blue, alpha * opaque(element)];
    const [dark, bright] = [light(over(ink, paper)), light(paper)].sort((one, other) => one - other);
    const ratio = (bright + 0.05) / (dark + 0.05);
    if (ratio < 4.5) found.add(`contrast ${ratio.toFixed(2)}: ${called(element)}`);
  }
  return [...found];
}
