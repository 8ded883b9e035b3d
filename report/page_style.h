// SPDX-License-Identifier: Apache-2.0
// The style sheet of the page. Colours are told apart by people who see red and green alike (the
// palette of Okabe and Ito), on both backgrounds.
#pragma once

namespace atp::report {

inline constexpr char kPageStyle[] = R"css(
:root { color-scheme: light dark;
  --ink: #1b1f24; --soft: #57606a; --grid: #e4e7eb; --card: #ffffff; --ground: #f3f5f7;
  --accent: #0b5cad; --run: #0b5cad; --plain: #8a6d3b; --safe: #00795c; --any: #7a5195;
  --limit: #c0392b; --in: #0072b2; --out: #d55e00; --host: #80868b; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6e9ec; --soft: #a3abb4; --grid: #333a42; --card: #1c2128; --ground: #12161b;
  --accent: #6cb6ff; --run: #6cb6ff; --plain: #d8b46a; --safe: #35c49b; --any: #c39be0;
  --limit: #ff7b6b; --in: #56b4e9; --out: #ff9640; --host: #9aa2aa; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1060px; padding: 24px 20px 48px; background: var(--ground);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 20px; margin: 0 0 4px; }
h3 { font-size: 16px; margin: 28px 0 2px; }
p { margin: 2px 0 8px; color: var(--soft); }
code { color: var(--ink); overflow-wrap: anywhere; }
header { margin-bottom: 20px; }
section { background: var(--card); border: 1px solid var(--grid); border-radius: 10px;
  padding: 22px 24px; margin-bottom: 24px; }
.words { border-left: 4px solid var(--accent); padding: 4px 0 4px 16px; margin: 14px 0; }
.words ul { list-style: none; padding: 0; margin: 0; font-size: 16px; }
.words li { margin: 4px 0; } li, p { overflow-wrap: anywhere; } .words p { color: var(--ink); font-size: 16px; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin: 16px 0; }
.tile { flex: 1 1 130px; border: 1px solid var(--grid); border-radius: 8px; padding: 10px 14px; }
.tile b { display: block; font-size: 21px; white-space: nowrap; }
.tile span { color: var(--soft); font-size: 13px; }
figure { margin: 0; overflow-x: auto; }
svg { width: 100%; min-width: 640px; height: auto; display: block; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; margin: 8px 0; }
th, td { padding: 5px 10px; border-bottom: 1px solid var(--grid); text-align: right;
  white-space: nowrap; }
th { color: var(--soft); font-weight: 600; white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 12em; }
@media (max-width: 600px) { body { padding: 12px 8px; } section { padding: 16px 12px; } }
)css";

}  // namespace atp::report
