package document

import (
	"errors"
	"io"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// EPUB reads a book of EPUB 2 or 3: its title, then its chapters in reading order, as HTML does. Its table of contents is left out.
func EPUB(r io.ReaderAt, size int64) (Text, error) {
	return readArchive(r, size, func(a *archive, md *markdown) error {
		if err := a.refuseDRM(); err != nil {
			return err
		}
		b := &book{archive: a, items: map[string]bookItem{}}
		if err := a.part("META-INF/container.xml", b.readContainer); err != nil {
			return err
		}
		if err := a.part(b.packaged, b.readPackage); err != nil {
			return err
		}
		return b.write(md)
	})
}

var errDRM = unreadable("The book is protected by digital rights management. Upload a copy without protection.")

// refuseDRM looks for encrypted parts other than fonts, which are only made hard to copy.
func (a *archive) refuseDRM() error {
	if a.has("META-INF/rights.xml") && a.has("META-INF/encryption.xml") {
		return errDRM
	}
	return a.optional("META-INF/encryption.xml", func(x *xmlReader) error {
		return x.find("EncryptionMethod", func(e element) error {
			switch e.attr("Algorithm") {
			case "http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC":
				return nil
			}
			return errDRM
		})
	})
}

type book struct {
	archive  *archive
	packaged string // the part that lists the others
	title    string
	items    map[string]bookItem
	spine    []string
}

type bookItem struct {
	part string
	skip bool
}

func (b *book) readContainer(x *xmlReader) error {
	err := x.find("rootfile", func(e element) error {
		if b.packaged == "" {
			b.packaged = resolve("", e.attr("full-path"))
		}
		return nil
	})
	if err == nil && b.packaged == "" {
		return errNotThatFormat
	}
	return err
}

func (b *book) readPackage(x *xmlReader) error {
	return x.each(func(element) error {
		return x.each(func(e element) error {
			return x.each(func(e element) (err error) {
				switch e.name {
				case "title":
					if b.title == "" {
						b.title, err = x.text()
					}
				case "item":
					b.items[e.attr("id")] = b.item(e)
				case "itemref":
					b.spine = append(b.spine, e.attr("idref"))
				}
				return err
			})
		})
	})
}

func (b *book) item(e element) bookItem {
	href, err := url.PathUnescape(e.attr("href"))
	if err != nil {
		href = e.attr("href")
	}
	kind := e.attr("media-type")
	isText := strings.Contains(kind, "html") || strings.HasSuffix(path.Ext(href), "html")
	isContents := strings.Contains(" "+e.attr("properties")+" ", " nav ")
	return bookItem{resolve(b.packaged, href), !isText || isContents}
}

// write puts the chapters in their order, each once. One that is missing is passed over if others are there.
func (b *book) write(md *markdown) error {
	seen := map[string]bool{}
	var missing error
	for _, id := range b.spine {
		item, ok := b.items[id]
		if !ok || item.skip || seen[item.part] {
			continue
		}
		seen[item.part] = true
		text, err := b.chapter(item.part)
		if errors.Is(err, errNoEntry) {
			missing = err
			continue
		}
		if err != nil {
			return err
		}
		if title := strings.Join(strings.Fields(b.title), " "); md.lines == 0 && !strings.HasPrefix(text, "# "+title) {
			md.heading(1, title)
		}
		md.raw(text)
	}
	if md.lines == 0 {
		return missing
	}
	return nil
}

// pageTitle is that of a chapter: it is its file's name, or the book's.
var pageTitle = regexp.MustCompile(`(?is)<title\b[^>]*>.*?</title\s*>|<title\b[^>]*/>`)

func (b *book) chapter(part string) (string, error) {
	raw, err := b.archive.readAll(part)
	if err != nil {
		return "", err
	}
	text, _, err := Decode(raw, DeclaredCharset("application/xhtml+xml", "", raw))
	if err != nil {
		return "", err
	}
	b.archive.budget.handle(len(text))
	b.archive.budget.tokens -= strings.Count(text, "<")
	if err := b.archive.budget.spent(); err != nil {
		return "", err
	}
	text, err = HTML(pageTitle.ReplaceAllString(text, ""))
	return cleanText(text), err
}
