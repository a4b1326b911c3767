// What the page's own markup does in the browser: buttons that trigger events, drawers, keys, files.
window.quotewright = (() => {
  const phone = () => window.matchMedia("(max-width: 900px)").matches;
  const flip = (side, shown) => document.getElementById("qw-body").classList.toggle(`qw-flip-${side}`, shown);
  let tab = null; // opened on a click, while the browser still allows it, for a file that is on its way

  function wire(element, trigger, acts) {
    const act = (target) => {
      const name = target.dataset.do;
      if (name === "copy") return copy(target);
      if (target.dataset.confirm && !target.classList.contains("qw-sure")) return ask(target);
      if (name === "rename_chat") return rename(target, trigger);
      if (name === "open_chat" && phone()) flip("left", false);
      if (name === "original" && target.dataset.source.toLowerCase().endsWith(".pdf")) tab = window.open("", "_blank");
      if (acts.includes(name)) trigger(name, { ...target.dataset });
    };
    element.addEventListener("click", (event) => {
      const target = event.target.closest("[data-do]");
      if (target) act(target);
    });
    element.addEventListener("keydown", (event) => {
      const span = event.target.closest("mark[data-do]");
      if (!span || (event.key !== "Enter" && event.key !== " ")) return;
      event.preventDefault();
      act(span);
    });
  }

  function ask(target) {
    const label = target.textContent;
    target.textContent = target.dataset.confirm;
    target.classList.add("qw-sure");
    const calm = () => {
      target.textContent = label;
      target.classList.remove("qw-sure");
    };
    target.addEventListener("blur", calm, { once: true });
    setTimeout(calm, 5000);
  }

  function rename(target, trigger) {
    const input = document.createElement("input");
    input.value = target.dataset.title;
    input.maxLength = 200;
    input.className = "qw-rename";
    input.setAttribute("aria-label", "New title");
    const acts = target.parentElement;
    let ended = false;
    const end = (keep) => {
      if (ended) return; // removing the input blurs it
      ended = true;
      input.remove();
      acts.hidden = false;
      if (keep) trigger("rename_chat", { ...target.dataset, title: input.value });
    };
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") end(true);
      if (event.key === "Escape") end(false);
    });
    input.addEventListener("blur", () => end(false));
    acts.hidden = true;
    acts.after(input);
    input.focus();
    input.select();
  }

  async function copy(target) {
    try {
      await navigator.clipboard.writeText(target.dataset.text);
    } catch {
      // without https only the page itself may be copied from
      const area = document.createElement("textarea");
      area.value = target.dataset.text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const label = target.textContent;
    target.textContent = "Copied";
    setTimeout(() => (target.textContent = label), 1500);
  }

  function receive(file) {
    const bytes = Uint8Array.from(atob(file.base64), (character) => character.charCodeAt(0));
    const inline = file.inline && file.type === "application/pdf";
    const url = URL.createObjectURL(new Blob([bytes], { type: inline ? file.type : "application/octet-stream" }));
    if (inline && tab) {
      tab.location = `${url}#page=${file.page}`;
    } else {
      if (tab) tab.close();
      const link = document.createElement("a");
      link.href = url;
      link.download = file.name;
      link.click();
    }
    tab = null;
    setTimeout(() => URL.revokeObjectURL(url), 600000);
  }

  function drawers(element) {
    for (const button of element.querySelectorAll("[data-drawer]")) {
      button.addEventListener("click", () => {
        const side = button.dataset.drawer;
        flip(side);
        if (phone()) flip(side === "left" ? "right" : "left", false);
      });
    }
  }

  function showPlace() {
    if (phone()) flip("right", true);
    setTimeout(() => {
      const place = document.querySelector("#qw-place .qw-here");
      if (!place) return;
      place.scrollIntoView({ block: "center" });
      place.focus({ preventScroll: true });
    }, 150);
  }

  const focus = (selector) => document.querySelector(selector)?.focus();
  const visible = (selector) => [...document.querySelectorAll(selector)].find((found) => found.offsetParent !== null);

  document.addEventListener("keydown", (event) => {
    if (event.altKey && !event.ctrlKey && !event.metaKey && event.code === "KeyN") {
      event.preventDefault();
      document.querySelector("#qw-new")?.click();
      focus("#qw-question textarea");
    }
    if (event.key !== "Escape") return;
    const running = visible("#qw-stop, #qw-race-stop, #qw-cancel-edit");
    if (running) running.click();
    else if (phone()) ["left", "right"].forEach((side) => flip(side, false));
  });

  // An empty question is not sent: no answer of the server may then meet what is typed next.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || !event.target.matches("#qw-ask textarea")) return;
    if (event.target.value.trim()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);

  document.addEventListener("click", (event) => {
    if (phone() && event.target.closest("#qw-new")) flip("left", false);
  });

  // The conversation stays at its end while it grows, unless somebody has scrolled up to read.
  document.addEventListener("DOMContentLoaded", () => {
    let atEnd = true;
    document.addEventListener("scroll", ({ target }) => {
      if (target.id === "qw-chat") atEnd = target.scrollHeight - target.scrollTop - target.clientHeight < 80;
    }, true);
    new MutationObserver((changes) => {
      const chat = document.getElementById("qw-chat");
      if (chat && atEnd && changes.some((change) => chat.contains(change.target))) chat.scrollTop = chat.scrollHeight;
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
  });

  return { wire, drawers, receive, showPlace, focus };
})();
