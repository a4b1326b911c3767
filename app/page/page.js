// A click on a copied span shows the passage that it stands in.
document.addEventListener("click", (event) => {
  const span = event.target.closest("mark.qw-span");
  if (!span) return;
  const id = [...span.classList].find((name) => /^qw-t\d+-p\d+$/.test(name));
  const passage = id && document.getElementById(id);
  if (!passage) return;
  passage.scrollIntoView({ behavior: "smooth", block: "nearest" });
  document.querySelectorAll(".qw-flash").forEach((other) => other.classList.remove("qw-flash"));
  passage.classList.add("qw-flash");
});
