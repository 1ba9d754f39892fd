package document

import (
	"path"
	"strings"
)

// chunk reads a page or a text that Word inserts when it opens the document. Programs that make documents of HTML have
// the whole text in such a part. One of another format is left out.
func (d *docx) chunk(id string, md *markdown) error {
	link := d.links[id]
	if link.external || !d.archive.has(link.target) {
		return nil
	}
	raw, err := d.archive.readAll(link.target)
	if err != nil {
		return err
	}
	var text string
	switch strings.ToLower(path.Ext(link.target)) {
	case ".html", ".htm", ".xhtml":
		text, err = readHTML(decodeBytes(raw, DeclaredCharset("text/html", "", raw)), &d.budget.omitted)
	case ".mht", ".mhtml":
		text, err = d.webPage(newMailPart(raw, "text/html"), 0)
	case ".txt":
		text = decodeBytes(raw, "")
	default:
		return nil
	}
	if d.embedded[link.target] = true; err == nil && d.budget.handle(len(text)) {
		md.raw(cleanText(text))
	}
	return err
}

// webPage returns the text of the first page in a saved web page.
func (d *docx) webPage(p mailPart, depth int) (string, error) {
	if p.mediaType == "text/html" {
		return readHTML(p.text(), &d.budget.omitted)
	}
	if !strings.HasPrefix(p.mediaType, "multipart/") || depth > maxMailDepth {
		return "", nil
	}
	for _, raw := range p.children() {
		if text, err := d.webPage(newMailPart(raw, "text/html"), depth+1); text != "" || err != nil {
			return text, err
		}
	}
	return "", nil
}
