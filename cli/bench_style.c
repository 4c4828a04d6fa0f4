/* bench_style.c: how the page looks. Six colours of which each two stay apart for people who see red, green or blue like another
 * colour too, each at least 3 to 1 against the page; shapes of the markers tell the same again. */
#include "cli/bench_page.h"

#define FONTS "system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif"

const char *const bench_style[] = {
    /* colours: light, then dark */
    ":root{--page:#fff;--card:#fff;--ink:#1b1e24;--soft:#5a6270;--line:#e2e5ea;--axis:#9aa1ad;--win:#e6f2ea;--win-ink:#0b5c47;--warn:#b3261e;",
    "--s0:#2563c9;--s1:#e2660c;--s2:#0b5c47;--s3:#d06ac6;--s4:#8a93a3;--s5:#66300f}",
    "@media(prefers-color-scheme:dark){:root{--page:#14161a;--card:#181b20;--ink:#e8eaee;--soft:#a3abb8;--line:#2e323b;--axis:#666e7b;--win:#153024;--win-ink:#6fe3b8;--warn:#ff8a80;",
    "--s0:#4c8dff;--s1:#f5923f;--s2:#4ff0b8;--s3:#b85fc6;--s4:#e6e9f0;--s5:#c0512a}}",
    /* the page */
    "*{box-sizing:border-box}",
    "body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 " FONTS ";-webkit-text-size-adjust:100%}",
    "main{max-width:1060px;margin:0 auto;padding:32px 16px 64px}",
    "h1{font-size:1.75rem;line-height:1.2;margin:0 0 4px}",
    "h2{font-size:1.3rem;margin:48px 0 4px;padding-top:16px;border-top:1px solid var(--line)}",
    "h3{font-size:1.05rem;margin:28px 0 8px}figure h3{margin-top:0}h4{font-size:.9rem;font-weight:600;margin:0 0 4px}",
    "p{margin:4px 0 12px;max-width:52em}.soft,.note{color:var(--soft)}.note{font-size:.85rem;margin:8px 0 0}",
    "a{color:inherit;text-decoration-color:var(--axis);text-underline-offset:3px}",
    "nav{display:flex;flex-wrap:wrap;gap:4px 18px;margin:12px 0 0;font-size:.9rem}",
    ".figures{display:flex;flex-wrap:wrap;gap:20px;margin-top:24px}figure{flex:1 1 100%;min-width:0;margin:0;padding:14px 16px;background:var(--card);border:1px solid var(--line);border-radius:10px}",
    "figure.single{flex:1 1 400px;max-width:518px}",
    ".panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,360px),1fr));gap:16px 28px}.panel{min-width:0}",
    /* charts */
    ".chart{display:block;width:100%;max-width:520px;height:auto;overflow:visible}",
    ".chart text{font:12px " FONTS ";fill:var(--ink);stroke:var(--card);stroke-width:3px;paint-order:stroke}.chart .tick,.chart .title{fill:var(--soft);font-variant-numeric:tabular-nums}",
    ".grid{stroke:var(--line);fill:none}.axis{stroke:var(--axis);fill:none}",
    ".s0{color:var(--s0)}.s1{color:var(--s1)}.s2{color:var(--s2)}.s3{color:var(--s3)}.s4{color:var(--s4)}.s5{color:var(--s5)}",
    ".line path,.mark path{fill:none;stroke:currentColor}.line .stroke{stroke-width:2;stroke-linejoin:round}.line .bars{stroke-width:1.2;opacity:.75}",
    ".line .lead{opacity:.45}.line .roof{stroke-width:1.5;opacity:.55}.mark path{stroke-width:1.2;stroke-dasharray:2 4}",
    ".dots>*,.dots>g>*{fill:currentColor;stroke:var(--card);stroke-width:.8}.line .dots path{fill:currentColor;stroke:var(--card)}",
    ".dots>g>.flag{fill:none;stroke:var(--warn);stroke-width:1.4}.dots>g>.hit,.made-up .dots>g>.hit{fill:transparent;stroke:none}",
    ".made-up .stroke{stroke-dasharray:5 4;opacity:.8}.made-up .dots>*,.made-up .dots>g>*,.made-up .dots path{fill:var(--card);stroke:currentColor;stroke-width:1.4}",
    ".made-up .dots>g>.flag{fill:none;stroke:var(--warn)}.made-up .label{font-style:italic}",
    ".key{width:22px;height:12px;vertical-align:-1px;margin-right:6px}.keys{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:.85rem;margin:0}.keys span,.who{white-space:nowrap}",
    ".sign{display:inline-block;width:11px;height:11px;vertical-align:-1px}.ring{border:1.5px solid var(--warn);border-radius:50%}",
    ".dash{width:22px;height:0;vertical-align:4px;border-top:2px dashed var(--soft)}",
    /* tables, each in a box of its own that scrolls */
    ".scroll{overflow:auto;max-height:70vh;margin:8px 0 0}table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}",
    "th,td{padding:3px 16px 3px 0;text-align:left;vertical-align:top}th{color:var(--soft);font-weight:600;white-space:nowrap}tr.begins td{border-top:1px solid var(--line)}",
    ".n{text-align:right}.gain{color:var(--soft)}.warn{color:var(--warn)}",
    "details{margin-top:10px;font-size:.9rem}summary{cursor:pointer;color:var(--soft)}",
    "details td,details th{white-space:nowrap;padding:2px 14px 2px 0}tr.begins td{padding-top:7px}",
    ".fastest td{background:var(--win)}.fastest td:last-child{color:var(--win-ink);font-weight:600}.synthetic td{color:var(--soft);font-style:italic}",
    ".contests{columns:320px;column-gap:28px;margin-top:12px}.contests>div{break-inside:avoid;margin-bottom:18px;border-top:1px solid var(--line);padding-top:8px}",
    ".contests p{margin:0;font-size:.9rem}.contests .scroll{margin:2px 0}.contests td{white-space:nowrap;padding-right:10px}.contests .overtakes{font-size:.85rem}.overtakes>.who{display:inline-block;margin-right:12px}",
    /* small screens, and paper */
    "@media(max-width:600px){main{padding-top:20px}figure{padding:12px 10px;margin-left:-6px;margin-right:-6px}h1{font-size:1.45rem}}",
    "@media print{details{display:none}figure{break-inside:avoid}}",
    NULL,
};
