/** Sets the colours before anything is drawn, so that nothing flashes; the rest of the page says which there are. */
const chosen = localStorage.getItem("penstock.theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
