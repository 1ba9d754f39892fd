package document

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
)

// Limits of a notebook, which is read completely: its size with all images, and its opening braces.
const (
	maxNotebookBytes  = 128 << 20
	maxNotebookBraces = 1_000_000
)

// IPYNB reads a Jupyter notebook, nbformat 3 to 4: Markdown cells as they are, code and text outputs in fences. The
// fence of code names the kernel's language. Images are left out. JSON that is not a notebook is returned as text.
func IPYNB(r io.ReaderAt, size int64) (Text, error) {
	if size > maxNotebookBytes {
		return Text{}, unreadable("The notebook has %d MiB; %d are read. Clear its outputs, and upload it again.",
			size>>20, maxNotebookBytes>>20)
	}
	raw, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	if err != nil {
		return Text{}, err
	}
	if bytes.Count(raw, []byte("{")) > maxNotebookBraces {
		return Text{}, unreadable("The notebook has more than %d braces. Clear its outputs, and upload it again.",
			maxNotebookBraces)
	}
	var book notebook
	if err := syntaxOnly(json.Unmarshal(jsonInUTF8(raw), &book)); err != nil {
		return Text{}, explain(err, nil)
	}
	if book.Format == nil && book.Cells == nil && book.Worksheets == nil {
		return readText(Input{MediaType: "application/json", SizeBytes: size, Body: bytes.NewReader(raw)})
	}
	md := newMarkdown(newBudget())
	book.write(md)
	return md.finish()
}

// jsonInUTF8 returns JSON in UTF-8 without a byte order mark. The input may be UTF-16 or have such a mark.
func jsonInUTF8(raw []byte) []byte {
	if _, charset, ok := decodeUnicode(raw[:min(len(raw), sniffBytes)]); ok && charset != "utf-8" {
		text, _, _ := decodeUnicode(raw)
		return []byte(text)
	}
	return bytes.TrimPrefix(raw, []byte("\ufeff"))
}

type notebook struct {
	Format     json.RawMessage `json:"nbformat"`
	Cells      jsonList[notebookCell]
	Worksheets jsonList[struct{ Cells jsonList[notebookCell] }]
	Metadata   struct {
		Kernelspec struct{ Language string }
		Language   struct{ Name string } `json:"language_info"`
	}
}

type notebookCell struct {
	Type     string       `json:"cell_type"`
	Source   notebookText // nbformat 4
	Input    notebookText // code in nbformat 3
	Level    int          // level of a heading in nbformat 3
	Language string       // nbformat 3
	Outputs  jsonList[notebookOutput]
}

type notebookOutput struct {
	Type  string       `json:"output_type"`
	Text  notebookText // of a stream; in nbformat 3 also the plain text of other outputs
	Data  notebookBundle
	Name  string        `json:"ename"`
	Value string        `json:"evalue"`
	Trace notebookTrace `json:"traceback"`
}

type notebookBundle struct {
	notebookVersions

	others notebookOthers
}

// notebookVersions are the versions of an output that are read, by their media types.
type notebookVersions struct {
	Plain    notebookText     `json:"text/plain"`
	Markdown notebookText     `json:"text/markdown"`
	HTML     notebookText     `json:"text/html"`
	Latex    notebookText     `json:"text/latex"`
	JSON     notebookJSON     `json:"application/json"`
	SVG      notebookText     `json:"image/svg+xml"`
	PNG      notebookPresence `json:"image/png"`
	JPEG     notebookPresence `json:"image/jpeg"`
	GIF      notebookPresence `json:"image/gif"`
}

// UnmarshalJSON reads the versions that are known, and whether there are others.
func (b *notebookBundle) UnmarshalJSON(raw []byte) error {
	if err := syntaxOnly(json.Unmarshal(raw, &b.notebookVersions)); err != nil {
		return err
	}
	return syntaxOnly(json.Unmarshal(raw, &b.others))
}

// notebookOthers are the media types of an output.
type notebookOthers map[string]notebookPresence

// runs reports whether a version is a program or data for one, such as a chart of Plotly.
func (o notebookOthers) runs() bool {
	for kind, isThere := range o {
		if bool(isThere) && strings.HasPrefix(kind, "application/") && kind != "application/json" {
			return true
		}
	}
	return false
}

// maxNotebookJSON is how much of a value of JSON is shown, in bytes. Of a larger one nothing is.
const maxNotebookJSON = 64 << 10

// notebookJSON is any value of JSON, as it stands.
type notebookJSON string

func (t *notebookJSON) UnmarshalJSON(raw []byte) error {
	if string(raw) != "null" && len(raw) <= maxNotebookJSON {
		*t = notebookJSON(raw)
	}
	return nil
}

// notebookPresence reports that a value other than null is there, without keeping it.
type notebookPresence bool

func (p *notebookPresence) UnmarshalJSON(raw []byte) error {
	*p = string(raw) != "null"
	return nil
}

// jsonList is a list without its nulls, which would only take memory.
type jsonList[T any] []T

func (l *jsonList[T]) UnmarshalJSON(raw []byte) error {
	return eachOf(raw, func(item *T) { *l = append(*l, *item) })
}

// syntaxOnly returns a decoder's error, except if a value has another type than its field. Such a value was left out.
func syntaxOnly(err error) error {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// eachOf decodes the items of a list one by one. JSON that is not a list has no items.
func eachOf[T any](raw []byte, f func(*T)) error {
	items := json.NewDecoder(bytes.NewReader(raw))
	if start, err := items.Token(); err != nil || start != json.Delim('[') {
		return err
	}
	for items.More() {
		var item *T
		if err := syntaxOnly(items.Decode(&item)); err != nil {
			return err
		}
		if item != nil {
			f(item)
		}
	}
	return nil
}

// notebookText is a string or a list of lines. Any other JSON gives an empty text.
type notebookText string

func (t *notebookText) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' {
		_ = json.Unmarshal(raw, (*string)(t)) // a value of another type is left out
		return nil
	}
	return t.join(raw, "")
}

// join sets t to the items of a list, each followed by end.
func (t *notebookText) join(raw []byte, end string) error {
	var b strings.Builder
	err := eachOf(raw, func(line *string) { b.WriteString(*line + end) })
	*t = notebookText(b.String())
	return err
}

// notebookTrace is a list of lines without line ends.
type notebookTrace struct{ notebookText }

func (t *notebookTrace) UnmarshalJSON(raw []byte) error { return t.join(raw, "\n") }

func (n *notebook) write(md *markdown) {
	language := strings.ToLower(cmp.Or(n.Metadata.Kernelspec.Language, n.Metadata.Language.Name))
	if !languageName.MatchString(language) {
		language = ""
	}
	cells := []notebookCell(n.Cells)
	for _, sheet := range n.Worksheets {
		cells = append(cells, sheet.Cells...)
	}
	for i, cell := range cells {
		md.budget.omitted.at = numbered("cell", i+1)
		cell.write(md, language)
	}
}

var languageName = regexp.MustCompile(`^[a-z0-9+#._-]{1,32}$`)

func (c *notebookCell) write(md *markdown, language string) {
	source := cleanText(string(c.Source))
	switch c.Type {
	case "code":
		source = cmp.Or(source, cleanText(string(c.Input)))
		if language == "" && languageName.MatchString(c.Language) {
			language = c.Language
		}
		md.fence(language, source)
		for _, output := range c.Outputs {
			output.write(md)
		}
	case "heading":
		md.heading(c.Level, source)
	default: // markdown or raw
		md.raw(source)
	}
}

func (o *notebookOutput) write(md *markdown) {
	text := cleanText(ansi.ReplaceAllString(string(o.Text+o.Data.Plain), ""))
	if o.Type == "error" || o.Type == "pyerr" {
		text = o.failure()
	}
	drawn := ""
	if o.Data.SVG != "" {
		drawn, _ = readHTML(cleanText(string(o.Data.SVG)), &omissions{})
	}
	isPicture := bool(o.Data.PNG || o.Data.JPEG || o.Data.GIF) || o.Data.SVG != "" && isBlank(drawn)
	if isPicture {
		md.budget.omitted.add(picture)
	}
	if markdown := cleanText(string(o.Data.Markdown)); markdown != "" {
		md.raw(markdown)
		return
	}
	if (isBlank(text) || objectName.MatchString(text)) && o.writeRich(md, drawn) {
		return
	}
	if !isPicture && o.Data.others.runs() {
		md.budget.omitted.add("interactive output")
	}
	md.fence("", text)
}

// objectName matches what Python says of an object that has no text: <IPython.core.display.HTML object>.
var objectName = regexp.MustCompile(`^\s*<[^<>\n]*>\s*$`)

// failure returns the trace of an error, behind the error's message if the trace does not have it.
func (o *notebookOutput) failure() string {
	message := cleanText(ansi.ReplaceAllString(o.Name+": "+o.Value, ""))
	trace := cleanText(ansi.ReplaceAllString(string(o.Trace.notebookText), ""))
	if o.Value != "" && strings.Contains(trace, cleanText(ansi.ReplaceAllString(o.Value, ""))) {
		return trace
	}
	return message + "\n" + trace
}

// writeRich writes a version of an output that says more than its plain text. drawn is the text of its drawing. It
// reports whether there is one.
func (o *notebookOutput) writeRich(md *markdown, drawn string) bool {
	shown := ""
	if page := cleanText(string(o.Data.HTML)); page != "" {
		shown, _ = readHTML(page, &md.budget.omitted) // what cannot be laid out shows nothing
	}
	for _, text := range []string{shown, cleanText(string(o.Data.Latex)), drawn} {
		if !isBlank(text) {
			md.raw(text)
			return true
		}
	}
	if o.Data.JSON != "" {
		md.fence("json", cleanText(string(o.Data.JSON)))
		return true
	}
	return false
}

// ansi matches the control sequences of ECMA-48 that color a terminal.
var ansi = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]")

// cleanText returns valid UTF-8 without NUL, with lines that end in LF. If a line was overwritten, as by a progress
// bar, only its last version stays.
func cleanText(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\ufffd"), "\r\n", "\n")
	if !strings.Contains(text, "\r") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return strings.Join(lines, "\n")
}
