// The editor for Cypher: what is large comes once from this server, and is kept by the browser.
const KEPT = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = {}));
  kept.run = (text) => setTriggerValue("run", text);
  kept.data = data;
  if (kept.editor) update(kept);
  if (kept.loading) return;
  kept.loading = true;
  const button = parentElement.querySelector(".run");
  button.disabled = true;
  import(new URL("/teller/codemirror.js", location.origin).href).then(({ make }) => {
    const place = parentElement.querySelector(".ed");
    kept.editor = make(place, parentElement.getRootNode(), kept.data.text, (text) => kept.run(text));
    kept.shown = kept.data.text;
    button.onclick = () => kept.run(kept.editor.text());
    button.disabled = false;
    update(kept);
  });
}

function update(kept) {
  const { editor, data } = kept;
  // what is being typed stays, unless the page asks for another text
  if (data.text !== kept.shown && data.text !== editor.text()) editor.set(data.text);
  kept.shown = data.text;
  editor.know(data.words);
  editor.fault(data.fault);
}
