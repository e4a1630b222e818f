// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    extension InspectorPage {
        /// Script: the three charts, drawn as SVG.
        static let charts = #"""
            const kinds = [
              ["hits", "hits"], ["stale", "stale hits"], ["revalidated", "revalidated"], ["collapsed", "collapsed"],
              ["misses", "misses"], ["bypasses", "not looked up"],
            ];
            const byteKinds = [["bytesSaved", "from the cache"], ["bytesFetched", "from the origin"]];
            const height = 100;

            const lookedUp = (series, i) =>
              series.hits[i] + series.stale[i] + series.revalidated[i] + series.collapsed[i] + series.misses[i];

            const steps = [1, 2, 3, 4, 5, 6, 8, 10];

            function ceiling(value) {
              if (value <= 1) return 1;
              const power = Math.pow(10, Math.floor(Math.log10(value)));
              return steps.map(step => step * power).find(step => step >= value);
            }

            // The same in units of 1,024.
            function byteCeiling(value) {
              const unit = Math.pow(1024, Math.floor(Math.log2(Math.max(value, 1024)) / 10));
              return ceiling(value / unit) * unit;
            }

            class Chart {
              constructor(id, title, tell) {
                this.tell = tell;
                this.chosen = null;
                const titleID = id + "-title";
                this.scale = element("span", {classes: "quiet"});
                this.picture = drawn("svg", {
                  role: "img", tabindex: "0", "aria-labelledby": titleID, "aria-describedby": id + "-told", preserveAspectRatio: "none",
                });
                this.told = element("output", {id: id + "-told"});
                this.oldest = element("span");
                const axis = element("div", {classes: "axis", "aria-hidden": "true"}, this.oldest, element("span", {text: "now"}));
                byId(id).append(
                  element("figcaption", {}, element("span", {id: titleID, text: title}), this.scale), this.picture, axis, this.told);
                this.picture.addEventListener("pointermove", event => {
                  const box = this.picture.getBoundingClientRect();
                  this.choose(Math.floor((event.clientX - box.left) / box.width * this.length));
                });
                this.picture.addEventListener("pointerleave", () => this.choose(null));
                this.picture.addEventListener("blur", () => this.choose(null));
                this.picture.addEventListener("keydown", event => {
                  const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10}[event.key];
                  if (!step && event.key !== "Escape") return;
                  event.preventDefault();
                  this.choose(step ? (this.chosen ?? this.length) + step : null);
                });
              }

              get length() { return this.series ? this.series.requests.length : 1; }

              choose(place) {
                this.chosen = place === null ? null : Math.min(Math.max(place, 0), this.length - 1);
                this.draw();
              }

              show(series, unit) {
                this.series = series;
                this.unit = unit;
                setText(this.oldest, (unit === "s" ? series.requests.length / 60 : series.requests.length) + " minutes ago");
                this.draw();
              }

              draw() {
                if (!this.series) return;
                this.picture.setAttribute("viewBox", "0 0 " + this.length + " " + height);
                const lines = [25, 50, 75].map(y => drawn("path", {class: "grid", d: "M0 " + y + "H" + this.length}));
                this.picture.replaceChildren(...lines, ...this.shapes());
                if (this.chosen !== null) {
                  this.picture.append(drawn("path", {class: "cursor", d: "M" + (this.chosen + 0.5) + " 0V" + height}));
                }
                const back = this.chosen === null ? null : this.length - 1 - this.chosen;
                const when = back === null ? "" : (back === 0 ? "now" : back + " " + this.unit + " ago") + ": ";
                setText(this.told, when + this.tell(this.series, this.chosen));
              }
            }

            class Stack extends Chart {
              constructor(id, title, kinds, write, ceiling, tell) {
                super(id, title, tell);
                this.kinds = kinds;
                this.ceiling = ceiling;
                this.write = write;
              }

              shapes() {
                const sums = this.series.requests.map((_, i) => this.kinds.reduce((sum, [key]) => sum + this.series[key][i], 0));
                const top = this.ceiling(Math.max(...sums));
                setText(this.scale, "top: " + this.write(top) + (this.unit === "s" ? "/s" : "/min"));
                const bases = new Array(this.length).fill(height);
                return this.kinds.map(([key]) => {
                  let path = "";
                  this.series[key].forEach((value, i) => {
                    if (value <= 0) return;
                    const tall = value / top * height;
                    bases[i] -= tall;
                    path += "M" + i + " " + bases[i].toFixed(2) + "h1v" + tall.toFixed(2) + "h-1z";
                  });
                  return drawn("path", {class: "f-" + key, d: path, "data-kind": key});
                });
              }
            }

            class Rate extends Chart {
              shapes() {
                setText(this.scale, "top: 100 %");
                let path = "", isDrawing = false;
                for (let i = 0; i < this.length; i += 1) {
                  const all = lookedUp(this.series, i);
                  // Where nothing was asked there is no rate; a lone point still shows as a short line.
                  if (all === 0) { isDrawing = false; continue; }
                  const y = (height - (this.series.hits[i] + this.series.stale[i]) / all * height).toFixed(2);
                  path += (isDrawing ? "L" + (i + 0.5) + " " + y : "M" + i + " " + y + "H" + (i + 0.9));
                  isDrawing = true;
                }
                return [drawn("path", {class: "rate", d: path})];
              }
            }

            const pick = (list, i) => i === null ? list.reduce((sum, value) => sum + value, 0) : list[i];

            const rateChart = new Rate("chart-rate", "Hit rate", (series, i) => {
              const hits = pick(series.hits, i) + pick(series.stale, i);
              const all = hits + pick(series.revalidated, i) + pick(series.collapsed, i) + pick(series.misses, i);
              return all ? percent(hits / all) + " of " + count(all) + " looked up" : "nothing was looked up";
            });
            const requestChart = new Stack("chart-requests", "Requests", kinds, count, ceiling, (series, i) =>
              kinds.map(([key, name]) => [pick(series[key], i), name]).filter(([number]) => number > 0)
                .map(([number, name]) => count(number) + " " + name).join(", ") || "no requests");
            const byteChart = new Stack("chart-bytes", "Body bytes", byteKinds, bytes, byteCeiling, (series, i) =>
              byteKinds.map(([key, name]) => bytes(pick(series[key], i)) + " " + name).join(", "));

            for (const [key, name] of kinds) {
              const mark = drawn("svg", {viewBox: "0 0 1 1", "aria-hidden": "true"});
              mark.append(drawn("path", {class: "f-" + key, d: "M0 0h1v1h-1z"}));
              byId("legend").append(element("li", {}, mark, name));
            }
            """#
    }
#endif
