package document

import (
	"errors"
	"io"
	"path"
	"strconv"
	"strings"
)

// readArchive reads a format that is an archive.
func readArchive(r io.ReaderAt, size int64, read func(*archive, *markdown) error) (Text, error) {
	a, err := openArchive(r, size)
	if err != nil {
		return Text{}, err
	}
	if said := a.advice(); said != "" {
		return Text{}, unreadable("%s", said)
	}
	md := newMarkdown(a.budget)
	if err := read(a, md); err != nil {
		return Text{}, explain(err, a.source.failed)
	}
	if err := a.writeProperties(md); err != nil {
		return Text{}, explain(err, a.source.failed)
	}
	return md.finish()
}

// writeProperties adds what a document in an archive says of itself at its end.
func (a *archive) writeProperties(md *markdown) error {
	if md.lines == 0 {
		return nil // they alone are no text
	}
	links, err := a.relations("")
	if err != nil {
		return err
	}
	var p properties
	for _, part := range []string{related(links, "core-properties", "docProps/core.xml"), "meta.xml"} {
		if err := a.optional(part, p.read); err != nil {
			return err
		}
	}
	for _, line := range p.lines(md.text()) {
		md.paragraph(line)
	}
	return nil
}

// part reads an XML part of an archive. errNoEntry if there is no part with that name.
func (a *archive) part(name string, read func(*xmlReader) error) error {
	body, err := a.open(name)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // read only
	return read(newXMLReader(body, a.budget))
}

// optional reads a part if the document has it.
func (a *archive) optional(name string, read func(*xmlReader) error) error {
	if !a.has(name) {
		return nil
	}
	return a.part(name, read)
}

// find calls found for each element with a name in a part, if the document has the part.
func (a *archive) find(part, name string, found func(*xmlReader, element) error) error {
	return a.optional(part, func(x *xmlReader) error {
		return x.find(name, func(e element) error { return found(x, e) })
	})
}

// relation leads from an OOXML part to another part, or to an address outside.
type relation struct {
	kind, target string // last element of the type's name; name of a part in the archive, or an address
	external     bool
}

// relations maps the ids of a part's relations to the relations. If part is empty, they are those of the whole
// document.
func (a *archive) relations(part string) (map[string]relation, error) {
	all := map[string]relation{}
	dir, base := path.Split(part)
	name := path.Join(dir, "_rels", base+".rels")
	return all, a.find(name, "Relationship", func(_ *xmlReader, e element) error {
		r := relation{path.Base(e.attr("Type")), e.attr("Target"), e.attr("TargetMode") == "External"}
		if !r.external {
			r.target = resolve(part, r.target)
		}
		all[e.attr("Id")] = r
		return nil
	})
}

// related returns the part of a kind; of several parts, the first by name. It returns fallback if there is none.
func related(all map[string]relation, kind, fallback string) string {
	found := ""
	for _, r := range all {
		if r.kind == kind && !r.external && (found == "" || r.target < found) {
			found = r.target
		}
	}
	if found == "" {
		return fallback
	}
	return found
}

// mainPart returns the part of an OOXML document that leads to all others.
func (a *archive) mainPart(usual string) (string, error) {
	all, err := a.relations("")
	if err != nil {
		return "", err
	}
	name := related(all, "officeDocument", usual)
	if !a.has(name) {
		return "", errNotThatFormat
	}
	return name, nil
}

var errNotThatFormat = errors.New("it is not what its type says, its main part is missing")

// number returns the integer in s. It returns otherwise if s is not an integer from -1,000,000 to 1,000,000.
func number(s string, otherwise int) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < -1_000_000 || n > 1_000_000 {
		return otherwise
	}
	return n
}
