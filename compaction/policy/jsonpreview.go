package policy

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
)

// JSONPreview shows long JSON without its middle.
type JSONPreview struct {
	BudgetTokens int      `json:"budget_tokens" min:"50" max:"1000000"`
	FirstItems   int      `json:"first_items" min:"0" max:"10000"`
	LastItems    int      `json:"last_items" min:"0" max:"10000"`
	CellChars    int      `json:"cell_chars" min:"8" max:"100000"`
	Depth        int      `json:"depth" min:"1" max:"100"`
	Of           string   `json:"of" oneof:"objects,all"`
	Except       []string `json:"exempt_tools"`
}

func (*JSONPreview) describe() Mechanism {
	return Mechanism{Name: "json_preview", Stage: Enter, Source: "Alyx",
		Words: "Shows long JSON with the first and last items of its lists, and with long texts cut in the middle. It says " +
			"where each cut text begins in the whole.",
		Settings: map[string]string{
			"budget_tokens": "JSON that takes no more is shown whole. A preview takes no more either.",
			"first_items":   "How many of the first items of a list are shown.",
			"last_items":    "How many of its last items are shown.",
			"cell_chars":    "What is shown of the beginning, and of the end, of a long text.",
			"of":            "Whether only objects are shown so, and lists of rows are left to largest_slice, or lists, too.",
			"depth":         "How deep lists and objects are shown.",
			"exempt_tools":  "Tools whose results are shown whole, with * for any characters.",
		},
		New: func() Step {
			return &JSONPreview{BudgetTokens: 10_000, FirstItems: 3, LastItems: 1, CellChars: 100, Depth: 6, Of: "objects",
				Except: []string{"expand"}}
		}}
}

// Edits replaces results by their previews.
func (j *JSONPreview) Edits(v clip.View, _ Moment) (edits []clip.Edit) {
	for r := range results(v) {
		if r.edit != nil || r.p.Clip != nil || len(r.p.Text) <= j.BudgetTokens || !selects(nil, j.Except, r.tool()) ||
			!j.isOf(r.p.Text) || r.tokens(v) <= j.BudgetTokens {
			continue
		}
		edits = append(edits, j.preview(v, r))
	}
	return edits
}

// isOf reports whether a text is JSON that JSONPreview shortens.
func (j *JSONPreview) isOf(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && (text[0] == '{' || text[0] == '[' && j.Of == "all") && json.Valid([]byte(text))
}

// preview returns the largest of several previews that fits. If none fits, it returns the beginning and the end of the
// JSON.
func (j *JSONPreview) preview(v clip.View, r result) clip.Edit {
	less := *j
	for {
		e := r.line("json_preview", less.text(r.p.Text, clip.TextOffset(*r.m, r.part)))
		if v.PartTokens(*r.m, r.part, &e) <= j.BudgetTokens {
			return e
		}
		if less.Depth == 1 && less.FirstItems+less.LastItems == 0 && less.CellChars <= 8 {
			return j.clipped(v, r)
		}
		less.FirstItems, less.LastItems = less.FirstItems/2, less.LastItems/2
		less.CellChars, less.Depth = max(less.CellChars/2, 8), max(less.Depth-1, 1)
	}
}

// clipped returns the largest of several clips that fits; if none fits, the smallest.
func (j *JSONPreview) clipped(v clip.View, r result) clip.Edit {
	for chars := 4 * j.BudgetTokens; ; chars /= 2 {
		if e := r.clip("json_preview", chars); chars == 0 || v.PartTokens(*r.m, r.part, &e) <= j.BudgetTokens {
			return e
		}
	}
}

// text returns the preview of JSON. Each cut text in it says at which byte of the whole result it begins; whole itself
// begins at offset.
func (j *JSONPreview) text(whole string, offset int) string {
	w := previewer{JSONPreview: j, whole: whole, offset: offset, json: json.NewDecoder(strings.NewReader(whole))}
	w.json.UseNumber()
	w.value(0)
	return "preview of JSON with " + fmt.Sprint(utf8.RuneCountInString(whole)) + " characters: " + w.out.String()
}

// previewer writes a preview while it reads the JSON.
type previewer struct {
	*JSONPreview
	whole  string
	offset int
	json   *json.Decoder
	out    strings.Builder
}

// value writes the next value; depth is how deep it is nested.
func (w *previewer) value(depth int) {
	start := w.json.InputOffset()
	token, err := w.json.Token()
	if err != nil {
		return
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			w.list(depth)
		} else {
			w.object(depth)
		}
	case string:
		w.cell(t, start)
	default:
		raw, err := json.Marshal(t)
		if err == nil {
			w.out.Write(raw)
		}
	}
}

// cell writes a text. A cut text gets a note with the literal's offset in the whole result.
func (w *previewer) cell(text string, from int64) {
	runes := utf8.RuneCountInString(text)
	if runes > 2*w.CellChars {
		literal := w.whole[from:w.json.InputOffset()]
		start := int(from) + strings.IndexByte(literal, '"')
		all := []rune(text)
		text = fmt.Sprintf("%s… %d characters from offset %d …%s", string(all[:w.CellChars]), runes, w.offset+start,
			string(all[runes-w.CellChars:]))
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) == nil {
		w.out.WriteString(strings.TrimSuffix(b.String(), "\n"))
	}
}

// list writes a list; its bracket was already read.
func (w *previewer) list(depth int) {
	items := 0
	var last []string // the newest items behind the first ones
	w.out.WriteByte('[')
	for w.json.More() {
		items++
		if items <= w.FirstItems && depth < w.Depth {
			if items > 1 {
				w.out.WriteByte(',')
			}
			w.value(depth + 1)
			continue
		}
		if w.LastItems == 0 || depth >= w.Depth {
			w.skip()
			continue
		}
		last = append(last, w.apart(depth+1))
		if len(last) > w.LastItems {
			last = last[1:]
		}
	}
	w.end()
	shown := min(items, w.FirstItems)
	if depth >= w.Depth {
		shown = 0
	}
	if hidden := items - shown - len(last); hidden > 0 {
		w.more(shown > 0, fmt.Sprintf("%d of %d items", hidden, items))
		shown++
	}
	for _, item := range last {
		if shown > 0 {
			w.out.WriteByte(',')
		}
		w.out.WriteString(item)
		shown++
	}
	w.out.WriteByte(']')
}

// object writes an object; its brace was already read.
func (w *previewer) object(depth int) {
	fields := 0
	w.out.WriteByte('{')
	for w.json.More() {
		start := w.json.InputOffset()
		key, err := w.json.Token()
		if err != nil {
			return
		}
		name, _ := key.(string)
		if fields++; depth >= w.Depth {
			w.skip()
			continue
		}
		if fields > 1 {
			w.out.WriteByte(',')
		}
		w.cell(name, start)
		w.out.WriteByte(':')
		w.value(depth + 1)
	}
	w.end()
	if depth >= w.Depth && fields > 0 {
		w.more(false, fmt.Sprintf("%d fields", fields))
	}
	w.out.WriteByte('}')
}

// more writes a note that something is not shown.
func (w *previewer) more(comma bool, what string) {
	if comma {
		w.out.WriteByte(',')
	}
	w.out.WriteString(`"… ` + what + `"`)
}

// apart returns the text of the next value instead of writing it.
func (w *previewer) apart(depth int) string {
	item := previewer{JSONPreview: w.JSONPreview, whole: w.whole, offset: w.offset, json: w.json}
	item.value(depth)
	return item.out.String()
}

// skip reads a value without showing it.
func (w *previewer) skip() {
	var raw json.RawMessage
	if err := w.json.Decode(&raw); err != nil && err != io.EOF {
		return
	}
}

// end reads the closing bracket or brace of a list or an object.
func (w *previewer) end() {
	if _, err := w.json.Token(); err != nil {
		return
	}
}
