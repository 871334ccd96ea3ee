// What the admin's pages call from x-data, registered by name: Alpine's CSP build evaluates no code from attributes.
document.addEventListener("alpine:init", () => {
  Alpine.data("theme", theme);
  Alpine.data("searchForm", searchForm);
  Alpine.data("searchDropdown", searchDropdown);
  Alpine.data("page", () => ({
    activeTab: "",
    sidebarMobileOpen: false,
    sidebarDesktopOpen: localStorage.getItem("sidebarDesktopOpen") !== "0",
    window: { location: { pathname: location.pathname, search: location.search } },
    init() {
      this.activeTab = getCurrentTab() || this.$root.dataset.tab;
      this.$watch("sidebarDesktopOpen", (open) => localStorage.setItem("sidebarDesktopOpen", open ? "1" : "0"));
    },
  }));
});
