package document

import "unicode"

// footers are the texts that a document shows on several pages, each once.
type footers struct {
	texts []string
	seen  map[string]bool
}

func newFooters() *footers { return &footers{seen: map[string]bool{}} }

// maxFooters is how many texts are kept. A document with more has other texts there.
const maxFooters = 200

// add adds a text of a kind, such as Header. A page number alone is none.
func (f *footers) add(kind, text string) {
	isWord := func(r rune) bool { return unicode.IsLetter(r) }
	shown := kind + ": " + text
	hasWords := false
	for _, r := range text {
		hasWords = hasWords || isWord(r)
	}
	if (!hasWords && kind != "Date") || text == "" || f.seen[shown] || len(f.texts) >= maxFooters {
		return
	}
	f.seen[shown] = true
	f.texts = append(f.texts, shown)
}

// write adds the texts at the end of a document.
func (f *footers) write(md *markdown) {
	for _, text := range f.texts {
		md.paragraph(text)
	}
}
