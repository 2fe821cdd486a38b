// The editor for Cypher. `make` gives an editor in an element; ui/components/editor.js uses it.
import { EditorState, Compartment } from "@codemirror/state";
import {
  EditorView, keymap, lineNumbers, drawSelection, highlightActiveLine, placeholder, tooltips,
} from "@codemirror/view";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { StreamLanguage, HighlightStyle, syntaxHighlighting, bracketMatching } from "@codemirror/language";
import { cypher } from "@codemirror/legacy-modes/mode/cypher";
import { autocompletion, completionKeymap, acceptCompletion, closeBrackets } from "@codemirror/autocomplete";
import { setDiagnostics } from "@codemirror/lint";
import { tags as t } from "@lezer/highlight";

// colours are those of the theme, so that both themes are readable
const look = HighlightStyle.define([
  { tag: t.keyword, color: "var(--st-primary-color)", fontWeight: "600" },
  { tag: [t.string, t.special(t.string)], color: "var(--st-green-text-color, #1a7037)" },
  { tag: [t.comment], color: "var(--st-gray-text-color, #4d5665)", fontStyle: "italic" },
  { tag: [t.variableName, t.atom, t.number], color: "var(--st-text-color)" },
  { tag: [t.standard(t.variableName), t.operatorKeyword], color: "var(--st-violet-text-color, #7a5af8)" },
]);
const frame = EditorView.theme({
  "&": { backgroundColor: "var(--st-background-color)", color: "var(--st-text-color)", fontSize: "14px" },
  "&.cm-focused": { outline: "2px solid var(--st-primary-color)" },
  ".cm-scroller": { fontFamily: "ui-monospace, Menlo, Consolas, monospace", minHeight: "9rem", maxHeight: "24rem" },
  ".cm-content": { caretColor: "var(--st-text-color)" },
  ".cm-cursor": { borderLeftColor: "var(--st-text-color)" },
  ".cm-gutters": { backgroundColor: "var(--st-secondary-background-color)", color: "var(--st-gray-text-color, #4d5665)", border: "none" },
  ".cm-activeLine": { backgroundColor: "transparent" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "color-mix(in srgb, var(--st-primary-color) 28%, transparent) !important" },
  ".cm-tooltip": { backgroundColor: "var(--st-secondary-background-color)", color: "var(--st-text-color)", border: "1px solid var(--st-border-color)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--st-primary-color)", color: "var(--st-background-color)" },
});

/** Complete labels and relations behind a colon, columns behind a dot, parameters behind a dollar. */
function completing(words) {
  return (context) => {
    const word = context.matchBefore(/[:.$|]?\s*[\w]*/);
    if (!word || (word.from === word.to && !context.explicit)) return null;
    const lead = /^[:.$|]/.exec(word.text);
    const before = context.state.sliceDoc(Math.max(0, word.from - 200), word.from);
    const inRelation = before.lastIndexOf("[") > Math.max(before.lastIndexOf("]"), before.lastIndexOf("("));
    const kind = !lead ? "keywords" : lead[0] === "." ? "columns" : lead[0] === "$" ? "parameters" : inRelation ? "relations" : "labels";
    if (!lead && word.text.trim().length < 2 && !context.explicit) return null;
    const from = lead ? word.from + /^[:.$|]\s*/.exec(word.text)[0].length : word.from + (/^\s*/.exec(word.text)[0].length);
    return { from, options: (words[kind] || []).map((label) => ({ label, type: kind === "keywords" ? "keyword" : "property" })), validFor: /^\w*$/ };
  };
}

/** Give an editor in `parent`; `run` is called with the text on Ctrl+Enter. */
export function make(parent, root, text, run) {
  const words = new Compartment();
  const view = new EditorView({
    parent, root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(), history(), drawSelection(), bracketMatching(), closeBrackets(), highlightActiveLine(),
        StreamLanguage.define(cypher), syntaxHighlighting(look), frame, EditorView.lineWrapping,
        placeholder("MATCH (s:Step) RETURN s.rank, s.dur_ns LIMIT 10"),
        tooltips({ position: "absolute" }),
        EditorView.contentAttributes.of({ "aria-label": "Cypher query. Ctrl+Enter runs it, Escape and then Tab leaves it." }),
        keymap.of([
          { key: "Mod-Enter", run: () => { run(view.state.doc.toString()); return true; } },
          { key: "Tab", run: acceptCompletion },
          ...completionKeymap, ...historyKeymap, ...defaultKeymap,
        ]),
        words.of(autocompletion({ override: [completing({})], icons: false })),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    set: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    know: (known) => view.dispatch({ effects: words.reconfigure(autocompletion({ override: [completing(known)], icons: false })) }),
    /** Underline what an error names: a word in quotes, or nothing. */
    fault: (said) => {
      const named = /['"`]([^'"`]{1,80})['"`]/.exec(said || "");
      const at = named ? view.state.doc.toString().indexOf(named[1]) : -1;
      const found = at < 0 ? [] : [{ from: at, to: at + named[1].length, severity: "error", message: said }];
      view.dispatch(setDiagnostics(view.state, found));
    },
  };
}
