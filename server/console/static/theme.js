// Sets the theme before anything is shown. Without a choice, that of the system counts.
(() => {
  const theme = localStorage.getItem("loci-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
