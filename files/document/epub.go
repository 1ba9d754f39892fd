package document

import (
	"errors"
	"io"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// EPUB reads an EPUB 2 or 3 book: its title, then its chapters in reading order. The table of contents is left out.
func EPUB(r io.ReaderAt, size int64) (Text, error) {
	return readArchive(r, size, func(a *archive, md *markdown) error {
		if err := a.refuseDRM(); err != nil {
			return err
		}
		b := &book{archive: a, chapters: map[string]string{}}
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

// refuseDRM returns errDRM if parts other than fonts are encrypted. Encryption of fonts only makes them hard to copy.
func (a *archive) refuseDRM() error {
	if a.has("META-INF/rights.xml") && a.has("META-INF/encryption.xml") {
		return errDRM
	}
	return a.find("META-INF/encryption.xml", "EncryptionMethod", func(_ *xmlReader, e element) error {
		switch e.attr("Algorithm") {
		case "http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC":
			return nil
		}
		return errDRM
	})
}

type book struct {
	archive  *archive
	packaged string // the part that lists the other parts
	title    string
	said     properties
	chapters map[string]string // id → part
	spine    []string
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
	return x.each(func(e element) (err error) {
		switch e.name {
		case "title":
			if b.title == "" {
				b.title, err = x.text()
			}
		case "creator", "subject":
			var text string
			text, err = x.text()
			b.said.add(propertyLabels[e.name], text)
		case "item":
			b.addChapter(e)
		case "itemref":
			b.spine = append(b.spine, e.attr("idref"))
		case "package", "metadata", "manifest", "spine":
			return b.readPackage(x)
		}
		return err
	})
}

// addChapter adds an item of the book if it is text and not the table of contents.
func (b *book) addChapter(e element) {
	href := e.attr("href")
	if unescaped, err := url.PathUnescape(href); err == nil {
		href = unescaped
	}
	kind := e.attr("media-type")
	isText := strings.Contains(kind, "html") || strings.HasSuffix(path.Ext(href), "html")
	isContents := strings.Contains(" "+e.attr("properties")+" ", " nav ")
	switch {
	case isText && isContents:
		b.archive.budget.omitted.addAt(tableContents, place{}, 1)
	case isText:
		b.chapters[e.attr("id")] = resolve(b.packaged, href)
	}
}

// write writes the chapters in order, each once. A missing chapter is skipped if there are others.
func (b *book) write(md *markdown) error {
	seen := map[string]bool{}
	var missing error
	for _, id := range b.spine {
		part, ok := b.chapters[id]
		if !ok || seen[part] {
			continue
		}
		seen[part] = true
		b.archive.budget.omitted.at = numbered("chapter", len(seen))
		text, err := b.chapter(part)
		if errors.Is(err, errNoEntry) {
			missing = err
			continue
		}
		if err != nil {
			return err
		}
		if title := onOneLine(b.title); md.lines == 0 && !strings.HasPrefix(text, "# "+title) {
			md.heading(1, title)
		}
		md.raw(text)
	}
	if md.lines == 0 {
		return missing
	}
	for _, line := range b.said.lines(md.text()) {
		md.paragraph(line)
	}
	return nil
}

// pageTitle matches the title element of a chapter, which is usually the name of its file or of the book.
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
	b.archive.budget.omitted.html.chapter = part
	text, err = readHTML(pageTitle.ReplaceAllString(text, ""), &b.archive.budget.omitted)
	return cleanText(text), err
}
