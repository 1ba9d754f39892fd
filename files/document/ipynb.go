package document

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"
)

// Limits of a notebook, which is read as a whole: its size with all images, and how many braces open in it, of objects or in texts.
const (
	maxNotebookBytes  = 128 << 20
	maxNotebookBraces = 1_000_000
)

// IPYNB reads a notebook of Jupyter, nbformat 3 to 4: Markdown cells as they are, code and its text outputs in fences, the code's with
// the language of the kernel. Images are left out. JSON that is no notebook is read as it is.
func IPYNB(r io.ReaderAt, size int64) (Text, error) {
	if size > maxNotebookBytes {
		return Text{}, unreadable("The notebook has %d MiB; %d are read. Clear its outputs, and upload it again.", size>>20, maxNotebookBytes>>20)
	}
	raw, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	if err != nil {
		return Text{}, err
	}
	if bytes.Count(raw, []byte("{")) > maxNotebookBraces {
		return Text{}, unreadable("The notebook has more than %d braces. Clear its outputs, and upload it again.", maxNotebookBraces)
	}
	var book notebook
	if err := json.Unmarshal(bytes.TrimPrefix(raw, []byte("\ufeff")), &book); err != nil {
		return Text{}, explain(err, nil)
	}
	if book.Format == nil && book.Cells == nil && book.Worksheets == nil {
		return readText(Input{MediaType: "application/json", SizeBytes: size, Body: bytes.NewReader(raw)})
	}
	md := newMarkdown(newBudget())
	book.write(md)
	return md.finish()
}

// IsNotebook tells from the beginning of a JSON file whether it is a notebook: it has cells of which the beginning is there, or says its
// nbformat. A notebook whose beginning is one large output may not be told.
func IsNotebook(head []byte) bool {
	return notebookMark.Match(head)
}

var notebookMark = regexp.MustCompile(`^\s*\{(?s:.*)("nbformat(_minor)?"\s*:|"cell_type"\s*:\s*")`)

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
	Source   notebookText // of nbformat 4
	Input    notebookText // of code in nbformat 3
	Level    int          // of a heading in nbformat 3
	Language string       // in nbformat 3
	Outputs  jsonList[notebookOutput]
}

type notebookOutput struct {
	Type  string       `json:"output_type"`
	Text  notebookText // of a stream; in nbformat 3 the plain text of others too
	Data  notebookBundle
	Name  string        `json:"ename"`
	Value string        `json:"evalue"`
	Trace notebookTrace `json:"traceback"`
}

type notebookBundle struct {
	Plain    notebookText `json:"text/plain"`
	Markdown notebookText `json:"text/markdown"`
}

// jsonList is a list without its nulls, which cost memory and mean nothing.
type jsonList[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *jsonList[T]) UnmarshalJSON(raw []byte) error {
	return eachOf(raw, func(item *T) { *l = append(*l, *item) })
}

// eachOf decodes the items of a list one by one. What is no list has none.
func eachOf[T any](raw []byte, f func(*T)) error {
	items := json.NewDecoder(bytes.NewReader(raw))
	if start, err := items.Token(); err != nil || start != json.Delim('[') {
		return err
	}
	for items.More() {
		var item *T
		if err := items.Decode(&item); err != nil {
			return err
		}
		if item != nil {
			f(item)
		}
	}
	return nil
}

// notebookText is a string, or a list of lines; anything else is none.
type notebookText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *notebookText) UnmarshalJSON(raw []byte) error {
	var b strings.Builder
	if raw[0] != '[' {
		var text string
		_ = json.Unmarshal(raw, &text)
		*t = notebookText(text)
		return nil
	}
	err := eachOf(raw, func(line *string) { b.WriteString(*line) })
	*t = notebookText(b.String())
	return err
}

// notebookTrace is a list of lines without their ends.
type notebookTrace string

// UnmarshalJSON implements json.Unmarshaler.
func (t *notebookTrace) UnmarshalJSON(raw []byte) error {
	var b strings.Builder
	err := eachOf(raw, func(line *string) { b.WriteString(*line + "\n") })
	*t = notebookTrace(b.String())
	return err
}

func (n *notebook) write(md *markdown) {
	language := n.Metadata.Kernelspec.Language
	if language == "" {
		language = n.Metadata.Language.Name
	}
	language = strings.ToLower(language)
	if !languageName.MatchString(language) {
		language = ""
	}
	cells := []notebookCell(n.Cells)
	for _, sheet := range n.Worksheets {
		cells = append(cells, sheet.Cells...)
	}
	for _, cell := range cells {
		cell.write(md, language)
	}
}

var languageName = regexp.MustCompile(`^[a-z0-9+#._-]{1,32}$`)

func (c *notebookCell) write(md *markdown, language string) {
	source := cleanText(string(c.Source))
	switch c.Type {
	case "code":
		if source == "" {
			source = cleanText(string(c.Input))
		}
		if language == "" && languageName.MatchString(c.Language) {
			language = c.Language
		}
		md.fence(language, source)
		for _, out := range c.Outputs {
			out.write(md)
		}
	case "heading":
		md.heading(c.Level, source)
	default: // markdown, raw
		md.raw(source)
	}
}

func (o *notebookOutput) write(md *markdown) {
	text := o.Text + o.Data.Plain
	if o.Type == "error" || o.Type == "pyerr" {
		text = notebookText(o.Trace)
		if text == "" {
			text = notebookText(o.Name + ": " + o.Value)
		}
	}
	if markdown := string(o.Data.Markdown); markdown != "" {
		md.raw(cleanText(markdown))
		return
	}
	md.fence("", cleanText(ansi.ReplaceAllString(string(text), "")))
}

// ansi are the sequences that colour a terminal, of ECMA-48.
var ansi = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]")

// cleanText leaves no NUL, no invalid UTF-8, and line ends in LF. Of a line that was written over, as by a progress bar, the last counts.
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
