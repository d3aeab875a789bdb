"use strict";
(function () {
  var root = document.body;
  function make(tag, text, attributes) {
    var node = document.createElement(tag);
    if (text) node.textContent = text;
    Object.keys(attributes || {}).forEach(function (name) { node.setAttribute(name, attributes[name]); });
    return node;
  }
  function value(row, at) {
    var text = row.cells[at] ? row.cells[at].textContent.trim() : "";
    var found = parseFloat(text.replace(/,/g, ""));
    return { text: text, number: found };
  }
  function sort(table, at, head) {
    var down = head.getAttribute("aria-sort") === "ascending";
    var rows = Array.prototype.slice.call(table.tBodies[0].rows);
    var numeric = head.classList.contains("num");
    var sign = down ? -1 : 1;
    rows.map(function (row, place) { return { row: row, place: place, key: value(row, at) }; })
      .sort(function (a, b) {
        if (!a.key.text !== !b.key.text) return a.key.text ? -1 : 1;
        var order = numeric ? a.key.number - b.key.number : a.key.text.localeCompare(b.key.text, undefined, { numeric: true });
        return sign * order || a.place - b.place;
      })
      .forEach(function (entry) { table.tBodies[0].appendChild(entry.row); });
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (cell) { cell.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  }
  function copy(text, done) {
    function old() {
      var area = make("textarea", text, { "aria-hidden": "true" });
      root.appendChild(area);
      area.select();
      var worked = document.execCommand("copy");
      area.remove();
      done(worked);
    }
    if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(text).then(function () { done(true); }, old);
    else old();
  }
  Array.prototype.forEach.call(document.querySelectorAll(".mh .scroll > table"), function (table, number) {
    var rows = table.tBodies[0].rows;
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, at) {
      var button = make("button", head.textContent, { type: "button" });
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () { sort(table, at, head); });
    });
    var tools = make("div", "", { "class": "tools" });
    var status = make("span", "", { role: "status" });
    if (rows.length > 12) {
      var id = "filter-" + number;
      var input = make("input", "", { type: "search", id: id });
      tools.appendChild(make("label", "Filter", { "for": id }));
      input.setAttribute("aria-describedby", table.caption.id);
      tools.appendChild(input);
      input.addEventListener("input", function () {
        var wanted = input.value.toLowerCase(), shown = 0;
        Array.prototype.forEach.call(rows, function (row) {
          row.hidden = row.textContent.toLowerCase().indexOf(wanted) < 0;
          if (!row.hidden) shown += 1;
        });
        status.textContent = wanted ? shown + " of " + rows.length + " rows" : "";
      });
    }
    var button = make("button", "Copy table", { type: "button", "aria-describedby": table.caption.id });
    button.addEventListener("click", function () {
      var lines = [table.tHead.rows[0]].concat(Array.prototype.filter.call(rows, function (row) { return !row.hidden; }));
      copy(lines.map(function (row) {
        return Array.prototype.map.call(row.cells, function (cell) {
          var chips = cell.querySelectorAll("li");
          return chips.length ? Array.prototype.map.call(chips, function (chip) {
            return chip.textContent;
          }).join(", ") : cell.textContent.trim();
        }).join("\t");
      }).join("\n"), function (worked) { status.textContent = worked ? "Copied" : "The browser did not allow to copy"; });
    });
    tools.appendChild(button);
    tools.appendChild(status);
    table.parentNode.parentNode.insertBefore(tools, table.parentNode);
  });
  var theme = make("button", "Dark or light", { type: "button", "class": "theme" });
  theme.addEventListener("click", function () {
    var dark = getComputedStyle(root).colorScheme === "dark";
    root.setAttribute("data-theme", dark ? "light" : "dark");
  });
  var kicker = document.querySelector(".mh .kicker");
  kicker.parentNode.insertBefore(theme, kicker);
  window.addEventListener("beforeprint", function () {
    Array.prototype.forEach.call(document.querySelectorAll("details"), function (part) { part.open = true; });
  });
})();
