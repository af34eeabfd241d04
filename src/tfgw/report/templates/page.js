"use strict";
// Each map: points light up under the mouse or the arrow keys; a click or Enter keeps one below the map.
for (const figure of document.querySelectorAll("figure.map")) {
  const plane = figure.querySelector(".plane"), tip = plane.querySelector(".tip"), kept = figure.querySelector(".kept");
  const data = JSON.parse(figure.querySelector("script.points").textContent);
  const marks = new Map();
  data.groups.forEach((group, number) => {
    // Of few points, matplotlib draws each as a path of its own.
    const drawn = plane.querySelectorAll(`[id$="-points-${number}"] :is(use, path)`);
    const own = [...drawn].filter((mark) => !mark.closest("defs"));
    group.forEach((point, place) => { own[place].classList.add("mark"); marks.set(point, own[place]); });
  });
  const pointOf = new Map([...marks].map(([point, mark]) => [mark, point]));
  let current = -1;
  const show = (point) => {
    marks.get(current)?.classList.remove("at");
    current = point;
    const mark = marks.get(point);
    tip.hidden = !mark;
    if (!mark) return;
    mark.classList.add("at");
    tip.textContent = data.texts[point];
    const box = mark.getBoundingClientRect(), outer = plane.getBoundingClientRect();
    tip.style.left = `${Math.max(0, Math.min(box.right - outer.left + 6, outer.width - tip.offsetWidth))}px`;
    tip.style.top = `${box.bottom - outer.top + 6}px`;
  };
  const keep = (point) => {
    if (!marks.has(point)) return;
    kept.textContent = data.texts[point];
    const target = data.links[point];
    if (!target) return;
    const link = document.createElement("a");
    link.href = `#${target}`;
    link.textContent = "See its explanation";
    kept.append("\n", link);
  };
  plane.addEventListener("pointermove", (event) => show(pointOf.has(event.target) ? pointOf.get(event.target) : -1));
  plane.addEventListener("pointerleave", () => show(-1));
  plane.addEventListener("click", (event) => { if (pointOf.has(event.target)) keep(pointOf.get(event.target)); });
  plane.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const count = data.texts.length;
    if (step) { show((Math.max(current, step > 0 ? -1 : 0) + step + count) % count); event.preventDefault(); }
    if (event.key === "Enter") keep(current);
  });
}
