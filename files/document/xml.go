package document

import (
	"bufio"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// xmlReader reads one XML part as a stream. It limits the depth, the size of a token and the number of tokens.
type xmlReader struct {
	dec    *xml.Decoder
	in     *tokenMeter
	budget *budget
	depth  int
}

func newXMLReader(r io.Reader, b *budget) *xmlReader {
	meter := &tokenMeter{r: r, left: maxXMLTokenBytes}
	dec := xml.NewDecoder(asUTF8(meter))
	dec.CharsetReader = func(label string, input io.Reader) (io.Reader, error) {
		if label = strings.ToLower(label); strings.HasPrefix(label, "utf-16") || strings.HasPrefix(label, "utf8") {
			return input, nil // asUTF8 has decoded it
		}
		return charset.NewReaderLabel(label, input)
	}
	return &xmlReader{dec: dec, in: meter, budget: b}
}

var otherCharset = regexp.MustCompile(`(?i)^\s*<\?xml[^>]*encoding\s*=\s*["'](?:[^u"']|u[^t"']|utf-?7)`)

// asUTF8 decodes UTF-16 by its byte order mark, and replaces invalid UTF-8 by U+FFFD. If the part declares another
// charset, it changes nothing.
func asUTF8(r io.Reader) io.Reader {
	buffered := bufio.NewReader(r)
	head, _ := buffered.Peek(200)
	if otherCharset.Match(head) {
		return buffered
	}
	return transform.NewReader(buffered, unicode.BOMOverride(unicode.UTF8.NewDecoder()))
}

// tokenMeter fails if too much is read for one token.
type tokenMeter struct {
	r    io.Reader
	left int
}

func (m *tokenMeter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, unreadable("The document has an XML tag, text or declaration of more than %d MiB. "+
			"Save it again, and upload that.", maxXMLTokenBytes>>20)
	}
	n, err := m.r.Read(p)
	m.left -= n
	return n, err
}

// next returns the next token, or io.EOF after the last one.
func (x *xmlReader) next() (xml.Token, error) {
	x.in.left = maxXMLTokenBytes
	token, err := x.dec.Token()
	if err != nil {
		return nil, err
	}
	switch token.(type) {
	case xml.StartElement:
		x.depth++
	case xml.EndElement:
		x.depth--
	}
	if x.depth > maxXMLDepth {
		return nil, unreadable("The document's elements are nested deeper than %d. Save it again, and upload that.",
			maxXMLDepth)
	}
	x.budget.tokens--
	return token, x.budget.spent()
}

// element is the start of an XML element. Its name has the prefix that the standard uses for the namespace, such as
// "w:p", whatever prefix the document uses.
type element struct {
	name  string
	attrs []xml.Attr
}

// attr returns the value of an attribute, given its full name, such as "r:id", or its local name alone. It is empty if
// the attribute is absent.
func (e element) attr(name string) string {
	space, local, qualified := strings.Cut(name, ":")
	if !qualified {
		local = name
	}
	for _, a := range e.attrs {
		if a.Name.Local == local && (!qualified || prefixes[a.Name.Space] == space) {
			return a.Value
		}
	}
	return ""
}

// each calls f for each child of the element that was just begun (at first, the root). It skips whatever f leaves
// unread.
func (x *xmlReader) each(f func(e element) error) error { return x.walk(f, func(string) {}) }

// walk is each, and also calls text for each text between the children.
func (x *xmlReader) walk(f func(e element) error, text func(string)) error {
	depth := x.depth
	for {
		token, err := x.next()
		if errors.Is(err, io.EOF) && depth == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.CharData:
			text(string(t))
		case xml.StartElement:
			if err := f(element{qualified(t.Name), t.Attr}); err != nil {
				return err
			}
			for x.depth > depth {
				if _, err := x.next(); err != nil {
					return err
				}
			}
		case xml.EndElement:
			return nil
		}
	}
}

// find calls found for each element with a name, at any depth, but not for those within an element that it found.
func (x *xmlReader) find(name string, found func(e element) error) error {
	return x.each(func(e element) error {
		if e.name == name {
			return found(e)
		}
		return x.find(name, found)
	})
}

// text returns all text within the element that was just begun.
func (x *xmlReader) text() (string, error) {
	var b strings.Builder
	for depth := x.depth; x.depth >= depth; {
		token, err := x.next()
		if err != nil {
			return "", err
		}
		if text, ok := token.(xml.CharData); ok {
			b.Write(text)
		}
	}
	return b.String(), nil
}

// qualified returns a name with its standard prefix. For a namespace without a known prefix it returns the local name.
func qualified(name xml.Name) string {
	if prefix, ok := prefixes[name.Space]; ok {
		return prefix + ":" + name.Local
	}
	return name.Local
}

// prefixes are the prefixes of the namespaces that are read: ECMA-376, transitional and strict, and OpenDocument 1.3.
var prefixes = map[string]string{
	"http://schemas.openxmlformats.org/wordprocessingml/2006/main":           "w",
	"http://purl.oclc.org/ooxml/wordprocessingml/main":                       "w",
	"http://schemas.openxmlformats.org/presentationml/2006/main":             "p",
	"http://purl.oclc.org/ooxml/presentationml/main":                         "p",
	"http://schemas.openxmlformats.org/drawingml/2006/main":                  "a",
	"http://purl.oclc.org/ooxml/drawingml/main":                              "a",
	"http://schemas.openxmlformats.org/drawingml/2006/diagram":               "dgm",
	"http://purl.oclc.org/ooxml/drawingml/diagram":                           "dgm",
	"http://schemas.openxmlformats.org/drawingml/2006/chart":                 "c",
	"http://purl.oclc.org/ooxml/drawingml/chart":                             "c",
	"http://schemas.openxmlformats.org/drawingml/2006/picture":               "pic",
	"http://purl.oclc.org/ooxml/drawingml/picture":                           "pic",
	"http://schemas.microsoft.com/office/drawing/2014/chartex":               "cx",
	"http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing":    "xdr",
	"http://purl.oclc.org/ooxml/drawingml/spreadsheetDrawing":                "xdr",
	"http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing": "wp",
	"http://purl.oclc.org/ooxml/drawingml/wordprocessingDrawing":             "wp",
	"urn:oasis:names:tc:opendocument:xmlns:chart:1.0":                        "chart",
	"urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0":               "svg",
	"urn:schemas-microsoft-com:vml":                                          "v",
	"urn:schemas-microsoft-com:office:office":                                "o",
	"http://schemas.openxmlformats.org/officeDocument/2006/math":             "m",
	"http://purl.oclc.org/ooxml/officeDocument/math":                         "m",
	"http://schemas.openxmlformats.org/officeDocument/2006/relationships":    "r",
	"http://purl.oclc.org/ooxml/officeDocument/relationships":                "r",
	"http://schemas.openxmlformats.org/markup-compatibility/2006":            "mc",
	"urn:oasis:names:tc:opendocument:xmlns:office:1.0":                       "office",
	"urn:oasis:names:tc:opendocument:xmlns:text:1.0":                         "text",
	"urn:oasis:names:tc:opendocument:xmlns:table:1.0":                        "table",
	"urn:oasis:names:tc:opendocument:xmlns:style:1.0":                        "style",
	"urn:oasis:names:tc:opendocument:xmlns:drawing:1.0":                      "draw",
	"urn:oasis:names:tc:opendocument:xmlns:presentation:1.0":                 "presentation",
	"urn:oasis:names:tc:opendocument:xmlns:manifest:1.0":                     "manifest",
	"urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0":            "fo",
	"urn:oasis:names:tc:opendocument:xmlns:form:1.0":                         "form",
	"http://www.w3.org/1999/xlink":                                           "xlink",
}
